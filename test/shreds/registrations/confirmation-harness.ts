// Harness of a leader's pending registrations on the sandbox chain. Commits of its store can fail, and
// its node can be slow or down.

import { ShredwayError } from "../../../src/core/errors.ts";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { decodeBase58, encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import type { LandingSources } from "../../../src/shreds/registrations/landing-confirmation.ts";
import {
  PendingRegistrations,
  type PendingRegistrationsOptions,
} from "../../../src/shreds/registrations/pending-registrations.ts";
import type {
  LandedTransaction,
  LandingState,
  LandingStates,
  Registration,
  SettledTip,
  Settlement,
} from "../../../src/shreds/registrations/registration-types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  carol,
  transferOf,
} from "../../support/transactions/chain.ts";
import { shredAddresses, shredInspector, shredWallet, silent, TestAccounting } from "./harness.ts";

const inspector = shredInspector();

export function registrationOf(
  wire: Uint8Array,
  changes: Partial<Registration> = {},
): Registration {
  const { signature, tipLamports, lifetime, nonce } = inspector.inspect(wire);
  return {
    signature,
    accountId: "a_1",
    lamports: tipLamports,
    slot: 1n,
    registeredMs: 1_767_225_600_000,
    lifetime,
    nonceAccount: nonce?.account ?? null,
    state: "pending",
    settledMs: null,
    countedLamports: null,
    countedOrder: null,
    reason: null,
    proof: null,
    ...changes,
  };
}

/** A small store whose commits fail on demand. */
export class Rows {
  readonly rows = new Map<string, Registration>();
  settles = 0;
  /** Before: nothing was changed. After: the change is stored, but the answer was lost. */
  fails: "before" | "after" | null = null;
  /** Another node counts. */
  isOver = false;

  async add(registration: Registration): Promise<boolean> {
    if (this.rows.has(registration.signature)) return false;
    this.rows.set(registration.signature, registration);
    return true;
  }

  async settle({ signature }: SettledTip, settlement: Settlement): Promise<boolean | null> {
    this.settles++;
    if (this.isOver) return null;
    const { fails } = this;
    if (fails === "before") throw new ShredwayError("store_failed", "full");
    const row = this.rows.get(signature);
    const isPending = row?.state === "pending";
    if (row && isPending) this.rows.set(signature, { ...row, ...settlement });
    if (fails === "after") throw new ShredwayError("store_failed", "lost");
    return isPending;
  }

  async hasOrder(order: bigint): Promise<boolean> {
    return [...this.rows.values()].some(({ countedOrder }) => countedOrder === order);
  }

  async pending(behind: Pick<Registration, "signature"> | null, limit: number) {
    const all = [...this.rows.values()].filter(({ state }) => state === "pending");
    const begin = all.findIndex(({ signature }) => signature === behind?.signature) + 1;
    return all.slice(begin, begin + limit);
  }

  async pendingOf(signatures: readonly string[]) {
    return [...this.rows.values()].filter(
      ({ signature, state }) => state === "pending" && signatures.includes(signature),
    );
  }

  /** There is no other node. */
  onNews(): () => void {
    return () => {};
  }
}

type Limits = NonNullable<PendingRegistrationsOptions["limits"]>;

/** The chain as seen by a node. */
export class ConfirmationHarness {
  readonly clock = new ManualClock();
  readonly accounting = new TestAccounting();
  readonly rows = new Rows();
  readonly run: ChainRun;
  /** Questions whether a signature landed. */
  readonly requests: { signature: string; atMs: number }[] = [];
  readonly calls: { signatures: number; searchHistory: boolean }[] = [];
  /** Transactions that were read. */
  readonly reads: string[] = [];
  readonly lifetimesAsked: string[] = [];
  readonly unwatched: string[] = [];
  underWay = 0;
  underWayMost = 0;
  answerMs = 0;
  isDown = false;
  /** Number of answers that wrongly report an expired blockhash. */
  lies = 0;
  /** The node that returns states is behind the others by this number of slots. */
  behindSlots = 0n;
  /** The node that returns states is on another fork since this slot. */
  forkedSlot: bigint | null = null;
  hasHistory = true;
  /** The recent blocks that the node remembers. */
  recentSlots = 300n;
  /** More signatures take the node too long. */
  signaturesMax = 256;
  /** The node that is asked for transactions does not have any yet. */
  hidesTransactions = false;
  hasSights = true;
  addresses = shredAddresses;
  /** The addresses in the database when it is read again; null: unchanged. */
  addressesOfOtherNodes: ReadonlySet<string> | null = null;
  registrations: PendingRegistrations;

  constructor(run: ChainRun, limits: Limits = {}) {
    this.run = run;
    this.clock.every(100, () => {
      run.pass(100_000_000n);
      this.accounting.ms += 100;
    });
    this.registrations = this.#newRegistrations(limits);
  }

  static async open(limits: Limits = {}): Promise<ConfirmationHarness> {
    const funded = [alice, bob, carol, shredWallet];
    const run = await ChainRun.open({
      intervalsPerSlot: 4,
      confirmedDepth: 2,
      funded: new Map(funded.map((pair) => [addressOf(pair), 100_000_000_000n])),
    });
    const harness = new ConfirmationHarness(run, limits);
    await harness.registrations.lead(harness.accounting);
    return harness;
  }

  /** The next process. Returns the number of resumed registrations. */
  async restart(limits: Limits = {}): Promise<number> {
    this.registrations = this.#newRegistrations(limits);
    await this.registrations.lead(this.accounting);
    return this.registrations.counts.pending;
  }

  /** Behaves like the registrar. */
  async register(wire: Uint8Array, accountId = "a_1"): Promise<string> {
    const registration = registrationOf(wire, { accountId, registeredMs: this.accounting.ms });
    if (!this.registrations.reserve(accountId)) throw new Error("expected a place");
    if (!(await this.rows.add(registration))) throw new Error("expected a new signature");
    this.registrations.add(registration);
    return registration.signature;
  }

  row(signature: string): Registration | undefined {
    return this.rows.rows.get(signature);
  }

  async seconds(count: number): Promise<void> {
    await this.clock.advance(count * 1000);
  }

  tip(lamports = 10_000n, amount = 1n): Uint8Array {
    const instructions = [transferOf(alice, bob, amount), transferOf(alice, shredWallet, lamports)];
    return this.run.legacy(instructions, [alice]);
  }

  async #answer<T>(look: () => T): Promise<T> {
    this.underWay++;
    this.underWayMost = Math.max(this.underWayMost, this.underWay);
    if (this.answerMs > 0) await this.clock.sleep(this.answerMs);
    this.underWay--;
    if (this.isDown) throw new ShredwayError("rpc_failed", "down");
    return look();
  }

  #states(signatures: readonly string[], searchHistory: boolean): LandingStates {
    if (signatures.length > this.signaturesMax) throw new ShredwayError("rpc_failed", "timeout");
    if (searchHistory && !this.hasHistory) throw new ShredwayError("rpc_failed", "no history");
    const { chain } = this.run;
    const slot = chain.slot("processed") - this.behindSlots;
    const states = signatures.map((signature): LandingState => {
      const status = chain.status(signature);
      if (!status || status.slot > slot) return "absent";
      const isRooted = status.slot <= slot - 32n;
      if (this.forkedSlot !== null && status.slot >= this.forkedSlot && !isRooted) return "absent";
      if (status.slot <= slot - this.recentSlots && !searchHistory) return "absent";
      return status.confirmationStatus === "processed" ? "processed" : "landed";
    });
    return { slot, states };
  }

  #landed(signature: string, addresses: ReadonlySet<string>): LandedTransaction | null {
    const { chain } = this.run;
    const found = chain.transaction(signature);
    if (!found || found.block.slot > chain.slot("confirmed")) return null;
    if (this.hidesTransactions) return null;
    const { accountKeys, preBalances, postBalances, err } = found.transaction;
    const gainLamports = accountKeys.reduce((gain, key, i) => {
      if (!addresses.has(key)) return gain;
      return gain + (postBalances[i] ?? 0n) - (preBalances[i] ?? 0n);
    }, 0n);
    return { slot: found.block.slot, err, gainLamports };
  }

  #newRegistrations(limits: Limits): PendingRegistrations {
    const { clock, rows: store } = this;
    return new PendingRegistrations({
      clock,
      log: silent,
      store,
      sources: this.#sources(),
      limits,
    });
  }

  #sources(): LandingSources {
    const { chain } = this.run;
    return {
      landed: {
        landingStates: (signatures, searchHistory) => {
          const atMs = this.accounting.ms;
          for (const signature of signatures) this.requests.push({ signature, atMs });
          this.calls.push({ signatures: signatures.length, searchHistory });
          return this.#answer(() => this.#states(signatures, searchHistory));
        },
        landedTransaction: (signature, addresses) => {
          this.reads.push(signature);
          return this.#answer(() => this.#landed(signature, addresses));
        },
      },
      outcomes: {
        blockhashState: (blockhash) => {
          this.lifetimesAsked.push(blockhash);
          const isFalse = this.lies-- > 0;
          return this.#answer(() => ({
            isValid: !isFalse && chain.isBlockhashValid(blockhash),
            slot: chain.slot("confirmed"),
          }));
        },
        nonceValue: (account) =>
          this.#answer(() => {
            const data = chain.account(account, "confirmed")?.data;
            return data?.length === 80 ? pubkeyOf(data.slice(40, 72)) : null;
          }),
      },
      observations: {
        watch: (bytes, listener) => {
          if (!this.hasSights) throw new ShredwayError("watch_refused", "full");
          const signature = encodeBase58(bytes);
          const end = chain.subscribe((event) => {
            if (event.kind !== "executed" || event.transaction.signature !== signature) return;
            listener();
          });
          return () => {
            this.unwatched.push(signature);
            end();
          };
        },
      },
      decode: decodeBase58,
      addresses: () => this.addresses,
      refreshAddresses: async () => {
        this.addresses = this.addressesOfOtherNodes ?? this.addresses;
      },
    };
  }
}
