// Offers of the QUIC process: transactions that the fast path sends before JavaScript reads them.
//
// The process offers each transaction of a connection whose submissions were accepted, with a sequence
// number (native/system/offer_channel.h), and passes the same bytes to quic-ingress.ts. The ingress
// claims every number once.

import type { TakenRequest } from "../submission/taken-request.ts";
import type { FastPathHost } from "./caller-connection.ts";
import type { FastConnection, Lesson } from "./fast-connection.ts";
import { readTakenRecord, takenRecordBytes } from "./taken-record.ts";

/** After a lesson, the same connection is taught again no sooner. */
const freshMs = 100;
const record = new Uint8Array(takenRecordBytes);

export class StreamOffers {
  readonly #host: FastPathHost;
  /** Streams whose numbers are not claimed yet. */
  readonly #open = new Set<OfferedStream>();

  constructor(host: FastPathHost) {
    this.#host = host;
  }

  /** The descriptor for the next process, which the caller closes; null: the system refused it. */
  open(): number | null {
    const descriptor = this.#host.native.openOffers();
    return descriptor >= 0 ? descriptor : null;
  }

  /** A client's connection. `wanted` is called when the process should offer its transactions. */
  connection(id: number, wanted: () => void): OfferingConnection {
    return new OfferingConnection(this.#host, this.#open, { id, wanted });
  }

  /** A stream that is not handled. */
  discard(stream: CompleteStream): void {
    new OfferedStream(this.#host, this.#open, stream).settle();
  }

  /** The process has ended, and everything that it passed on was received. */
  end(): void {
    for (const stream of this.#open) stream.claim();
    while (this.#host.native.endOffers(record) > 0) this.#host.abandoned(readTakenRecord(record));
  }
}

interface CompleteStream {
  /** Number of its offer; 0: it was not offered. */
  readonly sequence: number;
  readonly bytes: Uint8Array;
}

interface OfferingFacts {
  /** Number in the process. */
  readonly id: number;
  readonly wanted: () => void;
}

/** One connection of a client without protective options. */
export class OfferingConnection {
  readonly #host: FastPathHost;
  readonly #open: Set<OfferedStream>;
  readonly #facts: OfferingFacts;
  #freshUntilMs = 0;
  #isWanted = false;
  #isClosed = false;

  constructor(host: FastPathHost, open: Set<OfferedStream>, facts: OfferingFacts) {
    this.#host = host;
    this.#open = open;
    this.#facts = facts;
  }

  stream(stream: CompleteStream): OfferedStream {
    return new OfferedStream(this.#host, this.#open, stream, this);
  }

  learn({ keyId, untilNs }: Pick<Lesson, "keyId" | "untilNs">): void {
    const nowMs = this.#host.nowMs();
    // A submission may end after its connection, whose number the next process uses again.
    if (this.#isClosed || nowMs < this.#freshUntilMs) return;
    const key = this.#host.keyNumber(keyId);
    this.#freshUntilMs = nowMs + freshMs;
    this.#host.native.watchOffers(this.#facts.id, key, untilNs);
    if (!this.#isWanted) this.#facts.wanted();
    this.#isWanted = true;
  }

  forget(): void {
    this.#freshUntilMs = 0;
    this.#host.native.forgetOffers(this.#facts.id);
  }

  closed(): void {
    this.#isClosed = true;
    this.forget();
  }
}

/** One stream: what was sent for it. */
class OfferedStream implements FastConnection {
  readonly #host: FastPathHost;
  readonly #open: Set<OfferedStream>;
  readonly #stream: CompleteStream;
  readonly #connection: OfferingConnection | undefined;
  /** undefined: not claimed yet. */
  #taken: TakenRequest | null | undefined;

  constructor(
    host: FastPathHost,
    open: Set<OfferedStream>,
    stream: CompleteStream,
    connection?: OfferingConnection,
  ) {
    this.#host = host;
    this.#open = open;
    this.#stream = stream;
    this.#connection = connection;
    if (stream.sequence > 0) open.add(this);
    else this.#taken = null;
  }

  claim(): TakenRequest | null {
    if (this.#taken !== undefined) return this.#taken;
    this.#open.delete(this);
    const { sequence, bytes } = this.#stream;
    const sends = this.#host.native.claimOffer(sequence, bytes, record);
    this.#taken = sends > 0 ? readTakenRecord(record, bytes) : null;
    // An attacker who controls the process may offer another transaction than it passes on.
    if (sends < 0) this.#host.abandoned(readTakenRecord(record));
    return this.#taken;
  }

  get isTaken(): boolean {
    return this.#taken === undefined
      ? this.#host.native.isOfferTaken(this.#stream.sequence)
      : this.#taken !== null;
  }

  learn(lesson: Lesson): void {
    this.#connection?.learn(lesson);
  }

  forget(): void {
    this.#connection?.forget();
  }

  /** The stream is answered: claims it if nothing has, and abandons what no route adopted. */
  settle(): void {
    const taken = this.claim();
    if (taken) this.#host.abandoned(taken);
  }
}
