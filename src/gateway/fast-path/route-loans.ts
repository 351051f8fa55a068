// The loans of one route: idle connections to its partner that the fast path may write to.
//
// partner-endpoint.ts opens it and lends the connections that it does not need. A loan is free, used (the
// fast path wrote a request to it), or kept (the endpoint uses it).

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

export class RouteLoans {
  /** Number of the route in the fast path. */
  readonly number: number;
  /** Sends that no submission adopted; set by the endpoint. */
  onAbandoned: (send: FastSend) => void = () => undefined;
  readonly #native: NativeFastPath;
  readonly #closed: () => void;

  constructor(native: NativeFastPath, number: number, closed: () => void) {
    this.#native = native;
    this.number = number;
    this.#closed = closed;
  }

  /** Sets the form of the requests. Call it before the first loan. */
  setForm(form: FastRouteForm): void {
    this.#native.setRoute(
      this.number,
      [form.head, form.beforeId, form.beforeText, form.afterText],
      form.minimumTipLamports,
      form.transactionBytesMax,
    );
  }

  /** Lends a connected socket until `untilNs` (monotonic); null: the system refused. */
  lend(descriptor: number, untilNs: bigint): number | null {
    const loan = this.#native.lend(this.number, descriptor, untilNs);
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
    this.#closed();
  }
}
