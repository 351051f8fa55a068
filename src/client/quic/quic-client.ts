// QuicClient: one QUIC connection to the service for submissions, opened again whenever it ends.
//
// Created by connect.ts. A submission waits for a connection and for a free stream, up to its timeout. A
// submission whose response is missing is not repeated, because the service may have accepted it.

import { backOffMs } from "../../core/back-off.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { errorTable, messageOf, reasons } from "../../core/errors.ts";
import type { Dialect } from "../../core/quic/dialects.ts";
import { acceptedStatus, readResponseFrame } from "../../core/quic/response-frame.ts";
import { ShredwayCallError } from "../error.ts";
import type { TransactionInput } from "../types.ts";
import type { ClientConnection, ConnectionEvents } from "./client-connection.ts";
import { type ConnectionEnd, errorOfEnd, isRefusal } from "./connection-end.ts";
import type { QuicClientOptions, QuicSendOptions } from "./options.ts";
import { bytesOf, framed, signatureIn } from "./wire.ts";

interface ClientDependencies {
  readonly clock: Clock;
  readonly dialect: Dialect;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly options: QuicClientOptions;
  readonly timeoutMs: number;
  /** Resolves the name and opens a socket. Rejects if the address cannot be used. */
  readonly open: (events: ConnectionEvents) => Promise<ClientConnection>;
}

interface Submission {
  readonly bytes: Uint8Array;
  readonly settle: (result: Uint8Array | ShredwayCallError) => void;
}

const waitingMax = 1024;
const usualBackOff = { firstMs: 250, maxMs: 10_000 } as const;
const refusedBackOff = { firstMs: 2000, maxMs: 60_000 } as const;
/** A connection that lasted so long was healthy: its end does not increase the pause. */
const healthyNs = 5_000_000_000n;

function errorOfFrame(status: number, text: string): ShredwayCallError {
  const word = /^(\w+): /.exec(text)?.[1];
  const reason = reasons.find((each) => each === word);
  const seconds = /retry in (\d+) s/.exec(text)?.[1];
  return new ShredwayCallError(text, {
    reason: reason ?? "unknown",
    code: reason ? (errorTable[reason].jsonRpcCode ?? null) : null,
    httpStatus: status,
    retryAfterSeconds: seconds === undefined ? null : Number(seconds),
  });
}

function invalidAnswer(bytes: Uint8Array): ShredwayCallError {
  const message = `answer_invalid: expected a response frame, got ${bytes.length} other bytes`;
  return new ShredwayCallError(message, { reason: "answer_invalid" });
}

export class QuicClient {
  readonly #dependencies: ClientDependencies;
  /** Without a stream yet; in the order of their calls. */
  readonly #waiting = new Set<Submission>();
  readonly #streams = new Map<Submission, number>();
  #connection: ClientConnection | null = null;
  #pause: Timer | undefined;
  #failures = 0;
  #establishedNs: bigint | null = null;
  /** The last end, if the service refused the connection. */
  #refusal: ConnectionEnd | null = null;
  #isClosed = false;

  constructor(dependencies: ClientDependencies) {
    this.#dependencies = dependencies;
  }

  /** Whether the handshake of the present connection is complete. */
  get isConnected(): boolean {
    return this.#connection?.isEstablished ?? false;
  }

  /** The first attempt: rejects with ShredwayCallError, and no further one follows then. */
  start(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#connect({
        established: resolve,
        ended: (end) => {
          this.#isClosed = true;
          reject(errorOfEnd(end, this.#dependencies.options.address));
        },
      });
    });
  }

  /**
   * Returns the signature, which means that a route accepted the transaction. The dialects "astralane-tpu" and
   * "solana-tpu" have no responses: there it only means that the transaction arrived.
   */
  async send(transaction: TransactionInput, options: QuicSendOptions = {}): Promise<string> {
    const bytes = bytesOf(transaction, options.encoding);
    const response = await this.#submit(bytes, options);
    if (this.#dependencies.dialect.hasResponses) return this.#read(response);
    const signature = signatureIn(bytes);
    if (signature !== null) return signature;
    const message = "transaction_invalid: expected a signed transaction";
    throw new ShredwayCallError(message, { reason: "transaction_invalid" });
  }

  /** Sends 1 to 4 transactions in this order, all or none. Only with "shredway-tpu". */
  async sendBundle(
    transactions: readonly TransactionInput[],
    options: QuicSendOptions = {},
  ): Promise<readonly string[]> {
    const { dialect } = this.#dependencies;
    if (!dialect.takesBundles) {
      throw new TypeError(
        `dialect: expected "shredway-tpu" for bundles, got "${dialect.protocol}"`,
      );
    }
    const wires = transactions.map((each) => bytesOf(each, options.encoding));
    return this.#read(await this.#submit(framed(wires), options)).split(",");
  }

  /** Ends the connection; submissions without a response fail. Idempotent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#pause?.cancel();
    this.#connection?.close();
    this.#failWaiting(() => this.#closedError());
  }

  #closedError(): ShredwayCallError {
    const message = "unreachable: the client was closed";
    return new ShredwayCallError(message, { reason: "unreachable" });
  }

  #read(response: Uint8Array): string {
    const frame = readResponseFrame(response);
    if (!frame) throw invalidAnswer(response);
    if (frame.status === acceptedStatus) return frame.body;
    throw errorOfFrame(frame.status, frame.body);
  }

  #submit(bytes: Uint8Array, { signal, timeoutMs }: QuicSendOptions): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) {
        reject(signal.reason);
        return;
      }
      const refusal = this.#refusalOf(bytes);
      if (refusal) {
        reject(refusal);
        return;
      }
      const { clock } = this.#dependencies;
      const ms = timeoutMs ?? this.#dependencies.timeoutMs;
      const end = (finish: () => void): void => {
        timer.cancel();
        signal?.removeEventListener("abort", abort);
        this.#forget(submission);
        finish();
      };
      const abort = (): void => end(() => reject(signal?.reason));
      const timer = clock.after(ms, () => {
        const message = `timeout: expected a response within ${ms} ms, got none`;
        end(() => reject(new ShredwayCallError(message, { reason: "timeout" })));
      });
      const submission: Submission = {
        bytes,
        settle: (result) =>
          end(() => (result instanceof Uint8Array ? resolve(result) : reject(result))),
      };
      signal?.addEventListener("abort", abort, { once: true });
      this.#waiting.add(submission);
      this.#drain();
    });
  }

  /** The reason why a submission cannot be sent at all. */
  #refusalOf(bytes: Uint8Array): ShredwayCallError | null {
    const { dialect, options } = this.#dependencies;
    if (this.#isClosed) return this.#closedError();
    if (this.#refusal && !this.isConnected) return errorOfEnd(this.#refusal, options.address);
    if (bytes.length < 1 || bytes.length > dialect.streamBytesMax) {
      const expected = `1 to ${dialect.streamBytesMax} bytes`;
      const message = `value_invalid: transaction: expected ${expected}, got ${bytes.length}`;
      return new ShredwayCallError(message, { reason: "value_invalid" });
    }
    if (this.#waiting.size < waitingMax) return null;
    const message = `queue_full: ${waitingMax} submissions wait for the service; send it again later`;
    return new ShredwayCallError(message, { reason: "queue_full" });
  }

  #forget(submission: Submission): void {
    this.#waiting.delete(submission);
    const stream = this.#streams.get(submission);
    if (stream === undefined) return;
    this.#streams.delete(submission);
    this.#connection?.abandon(stream);
  }

  /** Opens streams while the service permits it. */
  #drain(): void {
    const connection = this.#connection;
    if (!connection?.isEstablished) return;
    const { address } = this.#dependencies.options;
    for (const submission of this.#waiting) {
      const stream = connection.open(submission.bytes, {
        responded: (bytes) => {
          this.#streams.delete(submission);
          submission.settle(bytes);
        },
        failed: (end) => {
          this.#streams.delete(submission);
          submission.settle(end ? errorOfEnd(end, address) : invalidAnswer(new Uint8Array(0)));
        },
      });
      if (stream === null) return;
      this.#waiting.delete(submission);
      this.#streams.set(submission, stream);
    }
  }

  #connect(first?: { established(): void; ended(end: ConnectionEnd): void }): void {
    const ended = (end: ConnectionEnd): void => {
      this.#connection = null;
      const retryMs = first ? null : this.#retry(end);
      const { name, code, message } = end;
      if (!first) this.#dependencies.options.onClosed?.({ name, code, message, retryMs });
      this.#establishedNs = null;
      first?.ended(end);
    };
    const events: ConnectionEvents = {
      established: () => {
        this.#establishedNs = this.#dependencies.clock.monotonicNs();
        this.#dependencies.options.onConnected?.();
        first?.established();
        first = undefined;
      },
      usable: () => this.#drain(),
      ended,
    };
    void this.#open(events);
  }

  async #open(events: ConnectionEvents): Promise<void> {
    try {
      const connection = await this.#dependencies.open(events);
      this.#connection = connection;
      if (this.#isClosed) connection.close();
      else connection.start();
    } catch (error) {
      events.ended({ name: "refused", code: null, message: messageOf(error) });
    }
  }

  /** Plans the next attempt. Returns the pause; null: the client is closed. */
  #retry(end: ConnectionEnd): number | null {
    if (this.#isClosed) return null;
    const { clock, random, options } = this.#dependencies;
    const isRefused = isRefusal(end);
    this.#refusal = isRefused ? end : null;
    if (isRefused) this.#failWaiting(() => errorOfEnd(end, options.address));
    const lastedNs = this.#establishedNs === null ? 0n : clock.monotonicNs() - this.#establishedNs;
    if (lastedNs >= healthyNs) this.#failures = 0;
    const range = isRefused ? refusedBackOff : usualBackOff;
    const ms = Math.ceil(backOffMs(range, this.#failures++, random()));
    this.#pause = clock.after(ms, () => this.#connect());
    return ms;
  }

  #failWaiting(error: () => ShredwayCallError): void {
    for (const submission of this.#waiting) submission.settle(error());
  }
}
