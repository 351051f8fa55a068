// The loans of one route: idle connections to its partner that the fast path may write to.
//
// http-route.ts opens it, and its endpoint lends the connections that it does not need. A loan is free, used (the
// fast path wrote a request to it), or kept (the endpoint uses it). The route gets its number with the first loan
// for which one is free: during a reload, the routes before have all of them.

import type { NativeFastPath } from "../../relay/data-plane/native-fast-path.ts";
import type { FastSend } from "../submission/taken-request.ts";

/** A partner's request around its id and its transaction, and what the partner accepts. */
interface FastRouteForm {
  /** Up to the digits of Content-Length. */
  readonly head: string;
  readonly beforeId: string;
  readonly beforeText: string;
  readonly afterText: string;
  readonly minimumTipLamports: bigint;
  readonly transactionBytesMax: number;
}

/** The numbers of the routes in the fast path. */
export interface RouteNumbers {
  /** null: all are in use. */
  take(loans: RouteLoans): number | null;
  release(number: number): void;
}

export class RouteLoans {
  /** Sends that no submission adopted; set by the endpoint. */
  onAbandoned: (send: FastSend) => void = () => undefined;
  readonly #native: NativeFastPath;
  readonly #numbers: RouteNumbers;
  #number: number | null = null;
  #form: FastRouteForm | null = null;

  constructor(native: NativeFastPath, numbers: RouteNumbers) {
    this.#native = native;
    this.#numbers = numbers;
  }

  /** Number of the route in the fast path; null: nothing was lent yet. */
  get number(): number | null {
    return this.#number;
  }

  /** Sets the form of the requests. Call it before the first loan. */
  setForm(form: FastRouteForm): void {
    this.#form = form;
  }

  /** Lends a connected socket until `untilNs` (monotonic); null: no number is free, or the system refused. */
  lend(descriptor: number, untilNs: bigint): number | null {
    this.#number ??= this.#takeNumber();
    if (this.#number === null) return null;
    const loan = this.#native.lend(this.#number, descriptor, untilNs);
    return loan < 0 ? null : loan;
  }

  lendAgain(loan: number, untilNs: bigint): void {
    this.#native.lendAgain(loan, untilNs);
  }

  /** False: it was used. */
  reclaim(loan: number): boolean {
    return this.#native.reclaim(loan);
  }

  /** The connection has ended. */
  release(loan: number): void {
    this.#native.release(loan);
  }

  /** Release every loan before. */
  close(): void {
    if (this.#number !== null) this.#numbers.release(this.#number);
  }

  #takeNumber(): number | null {
    const form = this.#form;
    if (!form) return null;
    const number = this.#numbers.take(this);
    if (number === null) return null;
    this.#native.setRoute(
      number,
      [form.head, form.beforeId, form.beforeText, form.afterText],
      form.minimumTipLamports,
      form.transactionBytesMax,
    );
    return number;
  }
}
