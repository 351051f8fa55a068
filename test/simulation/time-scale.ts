// The scale of a drawing of time: a gap in which nothing happens is cut short.

const msPerPixel = 4;
/** A longer gap is cut. */
const gapMaxMs = 4_000;
const cutPixels = 70;

/** A piece of time without a long gap. */
interface Piece {
  readonly beginMs: number;
  readonly endMs: number;
  /** The place of its begin. */
  readonly x: number;
}

interface Cut {
  /** The middle of it. */
  readonly x: number;
  readonly forMs: number;
}

export class TimeScale {
  readonly pieces: readonly Piece[];
  readonly cuts: readonly Cut[];

  /** `timesMs`: when something happens, in any order. `left`: x of the time 0, in pixels. */
  constructor(timesMs: readonly number[], left: number) {
    const pieces: Piece[] = [];
    const cuts: Cut[] = [];
    let piece: Piece = { beginMs: 0, endMs: 0, x: left };
    for (const atMs of timesMs.toSorted((a, b) => a - b)) {
      if (atMs - piece.endMs > gapMaxMs) {
        pieces.push(piece);
        const endX = piece.x + (piece.endMs - piece.beginMs) / msPerPixel;
        cuts.push({ x: endX + cutPixels / 2, forMs: atMs - piece.endMs });
        piece = { beginMs: atMs, endMs: atMs, x: endX + cutPixels };
      } else piece = { ...piece, endMs: Math.max(piece.endMs, atMs) };
    }
    this.pieces = [...pieces, piece];
    this.cuts = cuts;
  }

  /** In pixels. `atMs`: a time at which something happens, or in a piece. */
  xOf(atMs: number): number {
    const piece = this.pieces.findLast(({ beginMs }) => beginMs <= atMs) ?? this.pieces[0];
    return piece ? piece.x + (atMs - piece.beginMs) / msPerPixel : 0;
  }
}

/** "40 s" or "12 min". */
export function durationText(ms: number): string {
  return ms < 120_000 ? `${Math.round(ms / 1000)} s` : `${Math.round(ms / 60_000)} min`;
}
