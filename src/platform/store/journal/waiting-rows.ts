// Waiting rows: rows of one journal file that the database does not have yet, as bytes.
//
// Owned by journaled-submission-store.ts. The next change of a submission usually replaces its row before
// the database asks for it. So rows stay in the form of the journal, outside of the JavaScript heap, where
// no collection copies them. The bundles of these rows wait with them, but no change replaces a bundle.

import type { BundleRecord } from "../../../gateway/submission/types.ts";
import type { SqlValue } from "../driver.ts";
import { rowAt } from "./frames.ts";

/** Larger rows get a piece of their own. */
const pieceBytes = 256 * 1024;
/** The place of a row that was removed. Removing its key would make the map shrink and grow again. */
const removed = -1;

interface WaitingRow {
  readonly key: string;
  readonly row: readonly SqlValue[];
}

export class WaitingRows {
  /** Number of the piece times `pieceBytes`, and the offset in it. */
  readonly #places = new Map<string, number>();
  #pieces: Buffer[] = [];
  /** First free byte of the last piece. */
  #end = pieceBytes;
  #size = 0;
  #bundles: BundleRecord[] = [];

  get size(): number {
    return this.#size;
  }

  get bundles(): readonly BundleRecord[] {
    return this.#bundles;
  }

  /** Neither a row nor a bundle waits. */
  get isEmpty(): boolean {
    return this.#size === 0 && this.#bundles.length === 0;
  }

  addBundles(bundles: readonly BundleRecord[]): void {
    this.#bundles.push(...bundles);
  }

  /** The database has all of them. */
  forgetBundles(): void {
    this.#bundles = [];
  }

  /** Rows in memory: removed ones stay until all are removed. */
  get kept(): number {
    return this.#places.size;
  }

  has(key: string): boolean {
    return (this.#places.get(key) ?? removed) !== removed;
  }

  /** Copies the bytes of one row (frames.ts). */
  set(key: string, row: Uint8Array): void {
    if (!this.has(key)) this.#size++;
    this.#places.set(key, this.#keep(row));
  }

  delete(key: string): boolean {
    if (!this.has(key)) return false;
    this.#places.set(key, removed);
    if (--this.#size === 0) this.#forget();
    return true;
  }

  /** The rows in the order in which they came, at most `most` at once, without those removed until then. */
  *parts(most: number): Generator<readonly WaitingRow[]> {
    let part: WaitingRow[] = [];
    for (const [key, place] of this.#places) {
      const piece = this.#pieces[Math.floor(place / pieceBytes)];
      if (place === removed || !piece) continue;
      if (part.push({ key, row: rowAt(piece, place % pieceBytes).row }) < most) continue;
      yield part;
      part = [];
    }
    if (part.length > 0) yield part;
  }

  #keep(row: Uint8Array): number {
    if (row.length > pieceBytes - this.#end) {
      this.#pieces.push(Buffer.allocUnsafeSlow(Math.max(pieceBytes, row.length)));
      this.#end = 0;
    }
    const at = this.#end;
    this.#pieces.at(-1)?.set(row, at);
    this.#end = Math.min(pieceBytes, at + row.length);
    return (this.#pieces.length - 1) * pieceBytes + at;
  }

  /** Keeps the first piece for the next rows. */
  #forget(): void {
    this.#places.clear();
    this.#pieces = this.#pieces.slice(0, 1);
    const [first] = this.#pieces;
    this.#end = first?.length === pieceBytes ? 0 : pieceBytes;
  }
}
