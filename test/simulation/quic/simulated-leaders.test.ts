// The simulated leaders, network and QUIC library, used by the real process of the QUIC connections.

import { describe, expect, it } from "vitest";
import { newCredentials } from "../../../src/core/quic/certificate.ts";
import { QuicProcess } from "../../../src/gateway/tpu/quic-process.ts";
import type { TpuEvent } from "../../../src/gateway/tpu/types.ts";
import { Transactions } from "../gateway/transactions.ts";
import { ProcessClock, SimulatedTime, WallTime } from "../simulated-time.ts";
import { LeaderNetwork } from "./leader-network.ts";
import { type ProcessFailure, QuicChild } from "./quic-child.ts";
import type { LeaderMood } from "./simulated-leader.ts";

const address = { host: "8.8.0.1", port: 9_007 };
const restMs = 4_000;

class Run {
  readonly time = new SimulatedTime();
  readonly network: LeaderNetwork;
  readonly events: TpuEvent[] = [];
  /** Signatures that the leader has put into a block. */
  readonly taken: string[] = [];
  readonly children: QuicChild[] = [];
  readonly #transactions = new Transactions();
  readonly #process: QuicProcess;
  #sent = 0;

  constructor() {
    const wall = new WallTime(this.time);
    const network = new LeaderNetwork({
      seed: 1,
      time: this.time,
      identities: ["leader"],
      transactions: this.#transactions,
      passOn: (passed) => this.taken.push(...passed.map(({ signature }) => signature)),
      onDeparture: () => {},
    });
    this.network = network;
    this.#process = new QuicProcess({
      settings: {
        applicationProtocol: "solana-tpu",
        connectionsMax: 3,
        queueMax: 16,
        timeoutMs: 900,
        bind: { ipv4: "0.0.0.0", ipv6: "::" },
        seed: 1,
      },
      credentials: newCredentials(),
      clock: new ProcessClock(wall),
      report: (event) => this.events.push(event),
      start: () => {
        const child = new QuicChild(wall, network);
        this.children.push(child);
        return child;
      },
    });
    this.#process.selectLeaders([address]);
  }

  run(ms: number): Promise<void> {
    return this.time.runUntil(this.time.nowNs + ms * 1e6);
  }

  send(): number {
    const choice = { tip: 5_000, fails: false, isForged: false };
    const { wire } = this.#transactions.sign(0, choice, new Uint8Array(32));
    const id = this.#sent++;
    this.#process.send({ id, address, bytes: wire, restMs });
    return id;
  }

  /** Kinds of the events of one transaction, with the reason of the last one. */
  of(id: number): string[] {
    return this.events
      .filter((event) => event.id === id)
      .map((event) => ("reason" in event ? `${event.kind}: ${event.reason}` : event.kind));
  }
}

describe("a simulated leader", () => {
  it("gets each transaction once, and the sender one result, while packets are lost", async () => {
    const run = new Run();
    await run.run(500);
    run.network.lose(0.2, 60_000);
    const ids: number[] = [];
    for (let i = 0; i < 200; i++) {
      ids.push(run.send());
      await run.run(20);
    }
    await run.run(10_000);
    const results = ids.map((id) => run.of(id).at(-1));
    const acknowledged = results.filter((result) => result === "acknowledged").length;
    expect(ids.filter((id) => run.of(id).length > 2)).toEqual([]);
    expect(results.includes(undefined)).toBe(false);
    expect(acknowledged).toBeGreaterThan(150);
    expect(run.taken.length).toBeGreaterThanOrEqual(acknowledged);
    expect(new Set(run.taken).size).toBe(run.taken.length);
  });

  it.each<[LeaderMood, string[], number]>([
    ["accepts", ["sent", "acknowledged"], 1],
    ["takes nothing", ["sent", "acknowledged"], 0],
    ["allows no stream", ["dropped: deadline_passed"], 0],
    ["refuses", ["dropped: backing_off: disallowed"], 0],
    ["silent", ["dropped: deadline_passed"], 0],
  ])("that %s", async (mood, expected, taken) => {
    const run = new Run();
    run.network.setMood([0], mood, 20_000);
    await run.run(50);
    const id = run.send();
    await run.run(8_000);
    expect([run.of(id), run.taken.length]).toEqual([expected, taken]);
  });

  it("that restarts does not know its connections, and gets transactions again", async () => {
    const run = new Run();
    await run.run(500);
    run.network.setMood([0], "restarts", 10);
    await run.run(100);
    const lost = run.send();
    await run.run(8_000);
    const id = run.send();
    await run.run(1_000);
    expect(run.of(lost)).toEqual(["sent", "failed: not_acknowledged"]);
    expect(run.of(id)).toEqual(["sent", "acknowledged"]);
  });
});

describe("a simulated process", () => {
  it.each<[ProcessFailure, string]>([
    ["exits", "dropped: connection_lost: process_exited"],
    ["hangs", "dropped: connection_lost: process_unresponsive"],
    ["nonsense", "dropped: connection_lost: process_invalid_message"],
  ])("that %s ends what it has, and is replaced", async (failure, expected) => {
    const run = new Run();
    await run.run(500);
    run.children[0]?.fail(failure);
    const id = run.send();
    await run.run(6_000);
    const next = run.send();
    await run.run(1_000);
    expect([run.of(id).at(-1), run.children.length, run.of(next)]).toEqual([
      expected,
      2,
      ["sent", "acknowledged"],
    ]);
  });
});
