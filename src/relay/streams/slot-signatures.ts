// The signatures that one stream sent, by slot, for dialects that name withdrawn transactions by signature.
//
// A block contains a transaction once. On an Alpenglow chain, a leader may put it into the block again
// after an update-parent marker that abandons its first place, and the marker may be decoded last. The
// client therefore gets a signature once for each fork, and the marker's message lists what it withdraws.

/** Slots whose end was not seen, because shreds are missing. */
const openSlotsMax = 8;

export class SlotSignatures {
  /** For each slot: signatures, and the batch of their last place. */
  readonly #slots = new Map<bigint, Map<string, number>>();

  /** Returns false if the stream has sent the signature in this slot, and nothing withdrew it. */
  add(slot: bigint, signature: string, batchIndex: number): boolean {
    const sent = this.#of(slot);
    const before = sent.get(signature);
    sent.set(signature, Math.max(batchIndex, before ?? 0));
    return before === undefined;
  }

  /** Removes and returns the signatures whose last place in the slot is before the batch. */
  withdraw(slot: bigint, batchIndex: number): string[] {
    const sent = this.#slots.get(slot);
    if (!sent) return [];
    const withdrawn = [...sent].filter(([, place]) => place < batchIndex).map(([text]) => text);
    for (const signature of withdrawn) sent.delete(signature);
    return withdrawn;
  }

  /** All batches of the slot were read. */
  complete(slot: bigint): void {
    this.#slots.delete(slot);
  }

  #of(slot: bigint): Map<string, number> {
    const known = this.#slots.get(slot);
    if (known) return known;
    const sent = new Map<string, number>();
    this.#slots.set(slot, sent);
    const [oldest] = this.#slots.size > openSlotsMax ? this.#slots.keys() : [];
    if (oldest !== undefined) this.#slots.delete(oldest);
    return sent;
  }
}
