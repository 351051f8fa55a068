// Journal group: new submissions that one write call appends to the journal together.
//
// Owned by journaled-submission-store.ts. A write call costs more than everything else about a row, so the
// submissions that begin before the next event are written by one call. A group is written when two rounds had
// no new member. In a round, all promises settle that can.

/** Bounds the time of a write call. */
const membersMax = 64;
/**
 * The next submission begins in the round after the one in which the last one joined (endpoints/submission-queue.ts),
 * and joins at its end.
 */
const roundsWithoutNew = 2;

export class JournalGroup<Member> {
  readonly #write: (members: readonly Member[]) => void;
  #members: Member[] = [];
  /** Rounds that began since the last member joined; null: no round is due. */
  #rounds: number | null = null;

  /** `write` gets each member once, in order; it must not throw. */
  constructor(write: (members: readonly Member[]) => void) {
    this.#write = write;
  }

  join(member: Member): void {
    this.#members.push(member);
    if (this.#members.length >= membersMax) {
      this.write();
      return;
    }
    const isDue = this.#rounds !== null;
    this.#rounds = 0;
    if (!isDue) this.#nextRound();
  }

  /** Writes all members now. */
  write(): void {
    const members = this.#members;
    if (members.length === 0) return;
    this.#members = [];
    this.#write(members);
  }

  #nextRound(): void {
    queueMicrotask(() => process.nextTick(this.#round));
  }

  readonly #round = (): void => {
    if (this.#members.length > 0 && (this.#rounds ?? 0) < roundsWithoutNew) {
      this.#rounds = (this.#rounds ?? 0) + 1;
      this.#nextRound();
      return;
    }
    this.#rounds = null;
    this.write();
  };
}
