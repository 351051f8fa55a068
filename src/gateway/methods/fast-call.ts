// One call on the fast path: what was sent for it, and whether the next calls may be sent likewise.
//
// request-context.ts creates it, sendTransaction uses it.

import type { Clock } from "../../core/clock.ts";
import type { ApiKey } from "../accounts/types.ts";
import type { FastConnection } from "../fast-path/fast-connection.ts";
import type { TakenRequest } from "../submission/taken-request.ts";

export interface FastCallFacts {
  readonly connection: FastConnection;
  /** Request line and headers; empty on a stream. */
  readonly head: Uint8Array;
  readonly body: Uint8Array;
}

/** Longer than any connection. */
const foreverNs = 2n ** 62n;

export class FastCall {
  readonly #facts: FastCallFacts;
  readonly #key: ApiKey;
  readonly #clock: Pick<Clock, "nowNs" | "monotonicNs">;

  constructor(facts: FastCallFacts, key: ApiKey, clock: Pick<Clock, "nowNs" | "monotonicNs">) {
    this.#facts = facts;
    this.#key = key;
    this.#clock = clock;
  }

  /**
   * The sends of this transaction for this call; null: it was not sent. A check under way ends without a send.
   */
  claimOf(wire: Uint8Array): TakenRequest | null {
    const taken = this.#facts.connection.claim();
    return taken?.isOf(wire) ? taken : null;
  }

  /** The call was accepted, and a repetition with another transaction would be accepted likewise. */
  accepted(isBase58: boolean): void {
    const { connection, head, body } = this.#facts;
    const { id, expiresNs } = this.#key;
    const untilNs =
      expiresNs === null ? foreverNs : this.#clock.monotonicNs() + expiresNs - this.#clock.nowNs();
    if (untilNs > 0n) connection.learn({ head, body, isBase58, keyId: id, untilNs });
  }

  /** The next calls on the connection are not sent before they are read. */
  forget(): void {
    this.#facts.connection.forget();
  }
}
