// Producer: makes the blocks of each leader, at the times of the caller's clock.
//
// Called by chain.ts (`advanceTo`). A slot consists of intervals. In each interval the leader
// executes the waiting transactions and sends them as a batch of entries, so a transaction is in
// the shreds within one interval of its arrival. It has no clock and no timer, and reports all
// events to `emit` in order.

import { encodeBase58 } from "../../relay/data-plane/base58.ts";
import type { Background } from "./background.ts";
import { BlockShreds, ticksPerSlot } from "./block-shreds.ts";
import { type Candidate, candidateOf, type Executor, type LandedTransaction } from "./executor.ts";
import type { ChainFaults } from "./faults.ts";
import { type SandboxLeaders, slotsPerTurn } from "./leader-schedule.ts";
import type { Ledger, OpenBlock } from "./ledger.ts";
import { advancedNonceKey } from "./nonces.ts";
import type { LeaderQueue, QueueItem } from "./queue.ts";
import type { Svm } from "./svm.ts";
import type { ChainEvent, TransactionFailure } from "./types.ts";
import { UndoLog } from "./undo.ts";
import type { ClusterValidator } from "./validators.ts";
import type { Votes } from "./votes.ts";

/** Shreds of one interval, as their leader sends them. */
export interface EmittedShreds {
  readonly slot: bigint;
  /** Identity of the leader. */
  readonly leader: string;
  readonly packets: readonly Uint8Array[];
  /** Time at which the leader sent them, on the clock of `advanceTo`. */
  readonly timeNs: bigint;
}

interface ProducerOptions {
  readonly slotNs: bigint;
  readonly intervalsPerSlot: number;
  readonly transactionsPerIntervalMax: number;
  readonly hashesPerTick: number;
  readonly catchUpSlotsMax: number;
  readonly shredVersion: number;
  readonly firstSlot: bigint;
  /** Start of the first slot. */
  readonly genesisSeconds: bigint;
  readonly onShreds: ((shreds: EmittedShreds) => void) | null;
  /** A transaction that a leader dropped; it pays no fee and has no status. */
  readonly onDropped: ((signature: string, failure: TransactionFailure) => void) | null;
}

interface ProducerDependencies {
  readonly svm: Svm;
  readonly executor: Executor;
  readonly ledger: Ledger;
  readonly queue: LeaderQueue;
  readonly leaders: SandboxLeaders;
  readonly validators: readonly ClusterValidator[];
  readonly faults: ChainFaults;
  readonly background: Background | null;
  readonly votes: Votes | null;
  readonly emit: (event: ChainEvent) => void;
}

const parentOffsetMax = 65_535n;
const nsPerSecond = 1_000_000_000n;

export class Producer {
  readonly #options: ProducerOptions;
  readonly #dependencies: ProducerDependencies;
  readonly #ticks: number;
  #startNs: bigint | null = null;
  #timeNs = 0n;
  /** Number of completed intervals since the start. */
  #intervals = 0n;
  #shreds: BlockShreds | null = null;
  #skippedLeader: string | null = null;
  #votes: readonly Candidate[] = [];
  /** Transactions and bundles that were executed in the open block. */
  readonly #executed: QueueItem[] = [];

  constructor(options: ProducerOptions, dependencies: ProducerDependencies) {
    this.#options = options;
    this.#dependencies = dependencies;
    this.#ticks = ticksPerSlot / options.intervalsPerSlot;
  }

  /** Time of the last call of `advanceTo`. */
  get timeNs(): bigint {
    return this.#timeNs;
  }

  /** The current slot by time, with or without a block. */
  get currentSlot(): bigint {
    return this.#options.firstSlot + this.#intervals / BigInt(this.#options.intervalsPerSlot);
  }

  /**
   * Does everything that is due at `timeNs`. The first call starts the first slot. After a long
   * pause (a stopped process), time beyond `catchUpSlotsMax` slots is skipped.
   */
  advanceTo(timeNs: bigint): void {
    if (this.#startNs === null) {
      this.#startNs = timeNs;
      this.#timeNs = timeNs;
      this.#beginSlot();
    }
    const { slotNs, catchUpSlotsMax } = this.#options;
    const behindNs = timeNs - this.#nextDueNs() - slotNs * BigInt(catchUpSlotsMax);
    if (behindNs > 0n) this.#startNs += behindNs;
    for (let dueNs = this.#nextDueNs(); dueNs <= timeNs; dueNs = this.#nextDueNs()) {
      this.#timeNs = dueNs;
      this.#endInterval();
    }
    if (timeNs > this.#timeNs) this.#timeNs = timeNs;
  }

  blockTimeOf(slot: bigint): bigint {
    const { firstSlot, genesisSeconds, slotNs } = this.#options;
    return genesisSeconds + ((slot - firstSlot) * slotNs) / nsPerSecond;
  }

  /**
   * End of the current interval. It is counted from the start, so that rounding errors do not add
   * up.
   */
  #nextDueNs(): bigint {
    const { slotNs, intervalsPerSlot } = this.#options;
    return (this.#startNs ?? 0n) + ((this.#intervals + 1n) * slotNs) / BigInt(intervalsPerSlot);
  }

  #endInterval(): void {
    const { intervalsPerSlot } = this.#options;
    const interval = Number(this.#intervals % BigInt(intervalsPerSlot));
    const { open } = this.#dependencies.ledger;
    if (open && this.#shreds) this.#produce(open, this.#shreds, interval);
    const slot = this.currentSlot;
    this.#intervals++;
    if (interval + 1 < intervalsPerSlot) return;
    if (this.#skippedLeader !== null) {
      this.#dependencies.emit({ kind: "skipped", slot, leader: this.#skippedLeader });
      this.#skippedLeader = null;
    }
    this.#beginSlot();
  }

  #beginSlot(): void {
    const { ledger, leaders, validators, faults, votes, queue, emit } = this.#dependencies;
    const slot = this.currentSlot;
    const leader = validators[leaders.numberOf(slot)];
    if (!leader) throw new RangeError("expected at least one validator, got none");
    // Called in every slot, so that the random numbers depend only on the slots before.
    const isSkipped = faults.takeSkip(leader.identity);
    if (isSkipped && slot + 1n - ledger.tip.slot < parentOffsetMax) {
      this.#skippedLeader = leader.identity;
      return;
    }
    if (this.#isTurnBegin(slot)) this.#abandon(faults.takeFork());
    const undo = { accounts: new UndoLog(this.#dependencies.svm), others: [] as (() => void)[] };
    if (votes) undo.others.push(votes.checkpoint());
    const { confirmed, rooted } = ledger.begin(slot, leader.identity, undo);
    const parent = ledger.tipEnd;
    this.#shreds = new BlockShreds({ ...this.#options, slot, parent, shredder: leader.shredder });
    this.#setSysvars(slot);
    for (const { signature } of queue.purge((candidate) => this.#isExpired(candidate))) {
      this.#options.onDropped?.(signature, "BlockhashNotFound");
    }
    // No validator votes for the initial root.
    const isFirst = parent.slot < this.#options.firstSlot;
    this.#votes = votes && !isFirst ? votes.castFor(parent).map(candidateOf) : [];
    emit({ kind: "slot", slot, parent: parent.slot, root: ledger.rootSlot });
    for (const confirmedSlot of confirmed) emit({ kind: "confirmed", slot: confirmedSlot });
    for (const rootedSlot of rooted) emit({ kind: "rooted", slot: rootedSlot });
  }

  /** The first slot with a block in a leader's turn, in which a fork can begin. */
  #isTurnBegin(slot: bigint): boolean {
    const turn = BigInt(slotsPerTurn);
    return slot / turn !== this.#dependencies.ledger.tip.slot / turn;
  }

  #abandon(count: number): void {
    for (let i = 0; i < count; i++) {
      const block = this.#dependencies.ledger.abandonTip();
      if (!block) return;
      this.#dependencies.emit({ kind: "abandoned", block });
    }
  }

  #setSysvars(slot: bigint): void {
    const { svm, leaders, ledger } = this.#dependencies;
    const epoch = leaders.epochOf(slot);
    const epochStart = epoch * leaders.slotsPerEpoch;
    const { firstSlot } = this.#options;
    svm.beginSlot({
      slot,
      epoch,
      epochStartSeconds: this.blockTimeOf(epochStart > firstSlot ? epochStart : firstSlot),
      unixSeconds: this.blockTimeOf(slot),
      slotHashes: ledger.slotHashes(),
    });
  }

  /** The transaction has expired: its blockhash is not recent, and it uses no nonce. */
  #isExpired({ blockhash, transaction }: Candidate): boolean {
    return !this.#dependencies.ledger.isRecent(blockhash) && advancedNonceKey(transaction) === null;
  }

  #produce(open: OpenBlock, shreds: BlockShreds, interval: number): void {
    const { queue } = this.#dependencies;
    const { intervalsPerSlot, transactionsPerIntervalMax } = this.#options;
    const executed: Candidate[] = [];
    if (interval === Math.floor(intervalsPerSlot / 2)) this.#restart(open, shreds);
    for (const candidate of this.#votesOf(interval)) {
      this.#take({ candidates: [candidate], isBundle: false, notBeforeNs: 0n }, open, executed);
    }
    this.#addBackground(open.parent.blockhash);
    for (const item of queue.take(this.#timeNs, transactionsPerIntervalMax)) {
      this.#take(item, open, executed);
    }
    const packets = shreds.add(
      executed.map(({ transaction }) => transaction),
      this.#ticks,
    );
    this.#options.onShreds?.({
      slot: open.slot,
      leader: open.leader,
      packets,
      timeNs: this.#timeNs,
    });
    if (interval + 1 === intervalsPerSlot) this.#finish(open.slot, shreds);
  }

  /** If it is ordered, and if the slot is the first one of the leader's turn. */
  #restart({ slot, leader }: OpenBlock, shreds: BlockShreds): void {
    const { faults, ledger, queue, emit } = this.#dependencies;
    const outcome = this.#isTurnBegin(slot) ? faults.takeRestart() : null;
    if (outcome === null) return;
    const transactions = ledger.restart();
    this.#setSysvars(slot);
    this.#options.onShreds?.({ slot, leader, packets: shreds.restart(), timeNs: this.#timeNs });
    emit({ kind: "restarted", slot, transactions });
    for (const item of this.#executed.splice(0)) {
      if (outcome === "executed_again" && queue.hasCapacityFor(item.candidates.length)) {
        queue.add(item);
      }
    }
  }

  #addBackground(blockhash: Uint8Array): void {
    const { queue, background } = this.#dependencies;
    const { intervalsPerSlot, slotNs } = this.#options;
    const seconds = Number(slotNs) / 1e9 / intervalsPerSlot;
    for (const wire of background?.take(seconds, blockhash) ?? []) {
      if (queue.hasCapacityFor(1)) {
        queue.add({ candidates: [candidateOf(wire)], isBundle: false, notBeforeNs: 0n });
      }
    }
  }

  /** Votes are spread over the slot. */
  #votesOf(interval: number): readonly Candidate[] {
    return this.#votes.filter((_, i) => (3 * i + 1) % this.#options.intervalsPerSlot === interval);
  }

  #finish(slot: bigint, shreds: BlockShreds): void {
    const blockhash = shreds.hash;
    const block = this.#dependencies.ledger.finish(
      { slot, blockhash, lastRoot: shreds.lastRoot },
      encodeBase58(blockhash),
      this.blockTimeOf(slot),
    );
    this.#shreds = null;
    this.#votes = [];
    this.#executed.length = 0;
    this.#dependencies.emit({ kind: "block", block });
  }

  /** Executes one transaction, or a bundle completely or not at all. */
  #take(item: QueueItem, open: OpenBlock, executed: Candidate[]): void {
    const { candidates, isBundle } = item;
    const { executor, ledger, faults, svm, emit } = this.#dependencies;
    const wires = candidates.map(({ signature, transaction: { wire } }) => ({ signature, wire }));
    if (faults.takeRefusal(wires)) {
      this.#drop(candidates, "ClusterMaintenance");
      return;
    }
    const undo = isBundle ? new UndoLog(svm) : open.undo.accounts;
    const messages = new Set<string>();
    const block = {
      slot: open.slot,
      parentBlockhash: open.parent.blockhash,
      isRecent: (blockhash: string) => ledger.isRecent(blockhash),
      wasExecuted: (key: string) => ledger.wasExecuted(key) || messages.has(key),
    };
    const landed: LandedTransaction[] = [];
    for (const candidate of candidates) {
      const verdict = executor.execute(candidate, block, undo);
      const failure = verdict.kind === "dropped" ? verdict.failure : verdict.transaction.err;
      if (verdict.kind === "dropped" || (isBundle && failure !== null)) {
        if (isBundle) undo.rollBack();
        this.#drop(candidates, failure ?? "CommitCancelled");
        return;
      }
      messages.add(candidate.messageKey);
      landed.push(verdict.transaction);
    }
    if (isBundle) undo.mergeInto(open.undo.accounts);
    executed.push(...candidates);
    this.#executed.push(item);
    const added = landed.map((transaction, i) =>
      ledger.add(transaction, candidates[i]?.messageKey ?? ""),
    );
    for (const transaction of added) emit({ kind: "executed", slot: open.slot, transaction });
  }

  #drop(candidates: readonly Candidate[], failure: TransactionFailure): void {
    for (const { signature } of candidates) this.#options.onDropped?.(signature, failure);
  }
}
