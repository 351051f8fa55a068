// Taken request: what the fast path sent for a request before its handler ran.
//
// The fast path (../fast-path/) creates it; dispatch.ts offers it to the routes, and each route adopts its
// own send. What no route adopts is abandoned when the request is answered.

/** One request to a partner that is under way. */
export interface FastSend {
  /** Number of the route in the fast path. */
  readonly route: number;
  /** Number of the connection that carries it. */
  readonly loan: number;
  /** Id of the call. */
  readonly id: number;
  /** Monotonic: when the kernel had the last byte. */
  readonly sentNs: bigint;
}

interface TakenFacts {
  readonly signature: string;
  readonly takenNs: bigint;
  readonly wire: Uint8Array;
  readonly sends: FastSend[];
}

export class TakenRequest {
  /** First signature of the transaction, in base58. */
  readonly signature: string;
  /** Monotonic: when the fast path began. */
  readonly takenNs: bigint;
  readonly #wire: Uint8Array;
  readonly #sends: FastSend[];

  constructor({ signature, takenNs, wire, sends }: TakenFacts) {
    this.signature = signature;
    this.takenNs = takenNs;
    this.#wire = wire;
    this.#sends = sends;
  }

  /** Whether these very bytes were sent. Their form, tip and signatures have been checked. */
  isOf(wire: Uint8Array): boolean {
    return this.#wire === wire || Buffer.compare(this.#wire, wire) === 0;
  }

  /** Whether the route's send is not adopted yet. */
  hasSendOf(route: number | null): boolean {
    return this.#sends.some((send) => send.route === route);
  }

  /** The route's send; null: none is left. */
  adopt(route: number | null): FastSend | null {
    const place = this.#sends.findIndex((send) => send.route === route);
    return place < 0 ? null : (this.#sends.splice(place, 1)[0] ?? null);
  }

  /** Sends that no route adopted; none is left afterwards. */
  abandon(): readonly FastSend[] {
    return this.#sends.splice(0);
  }
}
