import assert from "node:assert/strict";
import { ComputeBudgetProgram, type Keypair } from "@solana/web3.js";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  addressOf,
  alice,
  bob,
  ChainRun,
  erin,
  sol,
  transferOf,
  wallets,
} from "../../support/transactions/chain.ts";

const fee = 5000n;
const rentMinimum = 890_880n;

/** Model of balances: the rules of a transfer between plain accounts. */
class Model {
  balances: bigint[];

  constructor(count: number, lamports: bigint) {
    this.balances = Array.from({ length: count }, () => lamports);
  }

  at(index: number): bigint {
    return this.balances[index] ?? 0n;
  }

  /** "landed", "failed" (pays) or "dropped" (pays nothing). */
  transfer({ from, to, lamports }: Move): "landed" | "failed" | "dropped" {
    const before = this.at(from);
    if (before < fee || !isAllowed(before - fee)) return "dropped";
    const after = [...this.balances];
    after[from] = before - fee;
    const charged = [...after];
    const isCovered = lamports <= (after[from] ?? 0n);
    after[from] = (after[from] ?? 0n) - lamports;
    after[to] = (after[to] ?? 0n) + lamports;
    const isSound = isCovered && [from, to].every((index) => isAllowed(after[index] ?? 0n));
    this.balances = isSound ? after : charged;
    return isSound ? "landed" : "failed";
  }
}

/** An account ends empty or rent-exempt. */
function isAllowed(after: bigint): boolean {
  return after === 0n || after >= rentMinimum;
}

const count = 4;
const parties = wallets.slice(0, count);

function party(place: number): Keypair {
  const pair = parties[place];
  if (!pair) throw new RangeError(`expected a party, got ${place}`);
  return pair;
}

const start = 2n * sol;

const index = fc.nat({ max: count - 1 });
const amount = fc.oneof(
  fc.bigInt({ min: 0n, max: 3_000_000_000n }),
  fc.constantFrom(0n, 1n, start, start - fee, start - fee - rentMinimum, start - 2n * fee),
);
const anyMove = fc.record({ from: index, to: index, lamports: amount });
type Move = { from: number; to: number; lamports: bigint };
const action = fc.oneof(
  { weight: 6, arbitrary: fc.record({ kind: fc.constant("send" as const), move: anyMove }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constant("bundle" as const),
      moves: fc.array(anyMove, { minLength: 1, maxLength: 4 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("slot" as const), skip: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant("fork" as const),
      blocks: fc.integer({ min: 1, max: 6 }),
    }),
  },
);

/** A chain with its model, which stores the balances before each block for forks. */
class Pair {
  readonly run: ChainRun;
  model = new Model(count, start);
  readonly before = new Map<bigint, bigint[]>();
  /** Makes all messages different. */
  #salt = 0;

  constructor(run: ChainRun) {
    this.run = run;
    run.chain.subscribe((event) => {
      if (event.kind === "slot") this.before.set(event.slot, this.model.balances);
      if (event.kind === "abandoned") {
        this.model.balances = this.before.get(event.block.slot) ?? [];
      }
    });
  }

  wire({ from, to, lamports }: Move): Uint8Array {
    const sender = party(from);
    const salt = ComputeBudgetProgram.setComputeUnitLimit({ units: 1000 + this.#salt++ });
    return this.run.legacy([salt, transferOf(sender, party(to), lamports)], [sender]);
  }

  send(move: Move): void {
    const signature = this.run.chain.send(this.wire(move));
    this.run.pass(this.run.slotNs / 4n);
    const outcome = this.model.transfer(move);
    const status = this.run.chain.status(signature);
    const seen = status ? (status.err === null ? "landed" : "failed") : "dropped";
    assert.equal(seen, outcome);
  }

  bundle(moves: readonly Move[]): void {
    const signatures = this.run.chain.sendBundle(moves.map((each) => this.wire(each)));
    this.run.pass(this.run.slotNs / 4n);
    const persisted = this.model.balances;
    const isComplete = moves.every((each) => this.model.transfer(each) === "landed");
    if (!isComplete) this.model.balances = persisted;
    for (const signature of signatures) {
      assert.equal(this.run.chain.status(signature) !== null, isComplete);
    }
  }

  compare(): void {
    const found = parties.map((pair) => this.run.balance(pair));
    assert.deepEqual(found, this.model.balances);
  }
}

describe("balances", () => {
  it("follow the model for any mix of transactions, bundles, skips and forks", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(action, { minLength: 1, maxLength: 25 }), async (actions) => {
        const run = await ChainRun.open({
          intervalsPerSlot: 4,
          validators: 2,
          funded: new Map(parties.map((pair) => [addressOf(pair), start])),
        });
        const pair = new Pair(run);
        const settle = (): void => {
          // The next transactions must reach the next interval of an open block.
          const elapsed = run.timeNs % run.slotNs;
          if (elapsed + run.slotNs / 4n >= run.slotNs) run.pass(run.slotNs - elapsed);
          while (run.chain.slot("processed") !== run.chain.currentSlot) run.slots();
        };
        pair.before.set(run.chain.slot("processed"), pair.model.balances);
        for (const each of actions) {
          settle();
          switch (each.kind) {
            case "send":
              pair.send(each.move);
              break;
            case "bundle":
              pair.bundle(each.moves);
              break;
            case "slot":
              if (each.skip) run.chain.faults.skipNext(2);
              run.slots();
              break;
            case "fork":
              run.chain.faults.forkNext(each.blocks);
              run.slots(3);
              break;
          }
          pair.compare();
        }
      }),
      { numRuns: 25 },
    );
  });
});

describe("the same seed and the same calls", () => {
  async function play(seed: number): Promise<{ text: string; bytes: string }> {
    const run = await ChainRun.open({
      seed,
      background: { transactionsPerSecond: 100, tipAddresses: [addressOf(erin)] },
      votes: true,
      intervalsPerSlot: 4,
    });
    run.slots(2);
    run.chain.faults.skipShare = 0.2;
    run.chain.faults.refuseShare = 0.1;
    run.chain.send(run.transfer(alice, bob, 5n));
    run.chain.airdrop(addressOf(alice), sol);
    run.slots(4);
    run.chain.sendBundle([run.transfer(alice, bob, 6n), run.transfer(bob, alice, 7n)]);
    run.chain.faults.forkNext(2);
    run.slots(8);
    const text = JSON.stringify(run.events, (_, value: unknown) =>
      typeof value === "bigint"
        ? String(value)
        : value instanceof Uint8Array
          ? Buffer.from(value).toString("hex")
          : value,
    );
    const packets = run.shreds.flatMap((shreds) => shreds.packets);
    return { text, bytes: Buffer.concat(packets).toString("base64") };
  }

  it("produce the same blocks and shreds, byte for byte; another seed produces others", async () => {
    const first = await play(7);
    const second = await play(7);
    expect(second.text === first.text).toBe(true);
    expect(second.bytes === first.bytes).toBe(true);
    expect(first.text).toContain('"abandoned"');
    const third = await play(8);
    expect(third.bytes === first.bytes).toBe(false);
  });

  it("do not depend on the frequency of the calls", async () => {
    const events = async (steps: readonly bigint[]): Promise<unknown> => {
      const run = await ChainRun.open({ background: { transactionsPerSecond: 50 }, votes: true });
      for (const step of steps) run.pass(step);
      return run.eventsOf("block").map(({ block }) => block.blockhash);
    };
    const once = await events([1_600_000_000n]);
    const often = await events(Array.from({ length: 1000 }, () => 1_600_000n));
    expect(often).toEqual(once);
  });
});
