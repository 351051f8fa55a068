import { describe, expect, it } from "vitest";
import { StatusReader } from "../../../src/gateway/submission/status-reader.ts";
import type {
  Commitment,
  SignatureOutcome,
  StatusSearch,
} from "../../../src/gateway/submission/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

interface RecordedRequest {
  readonly signatures: readonly string[];
  readonly searchHistory: boolean;
}

/** A reader and its node; `cached` and `history` are the node's data. */
class Harness {
  readonly clock = new ManualClock();
  readonly requests: RecordedRequest[] = [];
  readonly warnings: string[] = [];
  readonly cached = new Map<string, SignatureOutcome>();
  readonly history = new Map<string, SignatureOutcome>();
  failure: Error | null = null;
  answerMs = 1;
  readonly reader = new StatusReader({
    clock: this.clock,
    node: { signatureStatuses: (signatures, search) => this.#answer(signatures, search) },
    log: { warn: (text) => void this.warnings.push(text) },
  });

  async #answer(
    signatures: readonly string[],
    { searchHistory = false }: StatusSearch = {},
  ): Promise<(SignatureOutcome | null)[]> {
    this.requests.push({ signatures, searchHistory });
    await this.clock.sleep(this.answerMs);
    if (this.failure) throw this.failure;
    return signatures.map((signature) => {
      const old = searchHistory ? this.history.get(signature) : undefined;
      return this.cached.get(signature) ?? old ?? null;
    });
  }

  /** The result of one call and its duration `tookMs`. */
  async read(...signatures: string[]): Promise<(string | undefined)[]> {
    return this.#results(signatures, false);
  }

  async readOld(...signatures: string[]): Promise<(string | undefined)[]> {
    return this.#results(signatures, true);
  }

  async #results(signatures: readonly string[], isOld: boolean): Promise<(string | undefined)[]> {
    const startedNs = this.clock.monotonicNs();
    const questions = signatures.map((signature) => ({ signature, isOld }));
    let isAnswered = false;
    const reading = this.reader.read(questions).finally(() => {
      isAnswered = true;
    });
    const isWaiting = () => !isAnswered;
    while (isWaiting()) await this.clock.advance(1);
    const answers = await reading;
    this.tookMs = Number((this.clock.monotonicNs() - startedNs) / 1_000_000n);
    return signatures.map((signature) => {
      const results = answers.get(signature);
      return results === null ? "unknown" : results?.commitment;
    });
  }

  tookMs = 0;

  /** All queries of the node, in order. */
  get signatures(): string[] {
    return this.requests.flatMap(({ signatures }) => signatures);
  }
}

function outcome(commitment: Commitment): SignatureOutcome {
  return { slot: 5n, err: null, commitment };
}

describe("a status reader", () => {
  it("returns the node's statuses and the unknown signatures", async () => {
    const harness = new Harness();
    harness.cached.set("a", outcome("processed"));
    expect(await harness.read("a", "b")).toEqual(["processed", "unknown"]);
    expect(harness.requests).toEqual([{ signatures: ["a", "b"], searchHistory: false }]);
    expect(await harness.read()).toEqual([]);
    expect(harness.requests.length).toBe(1);
  });

  it("repeats queries for statuses that can change, and never for finalized ones", async () => {
    const harness = new Harness();
    harness.cached.set("a", outcome("confirmed")).set("b", outcome("finalized"));
    expect(await harness.read("a", "b")).toEqual(["confirmed", "finalized"]);
    harness.cached.set("a", outcome("finalized"));
    expect(await harness.read("a", "b")).toEqual(["confirmed", "finalized"]);
    expect(harness.requests.length).toBe(1);
    await harness.clock.advance(500);
    harness.cached.clear();
    harness.cached.set("a", outcome("finalized"));
    expect(await harness.read("a", "b")).toEqual(["finalized", "finalized"]);
    expect(harness.requests[1]?.signatures).toEqual(["a"]);
    await harness.clock.advance(3_600_000);
    expect(await harness.read("a", "b")).toEqual(["finalized", "finalized"]);
    expect(harness.requests.length).toBe(2);
  });

  it("shares queries of many calls, in rounds of 256, one at a time, ten per second", async () => {
    const harness = new Harness();
    harness.answerMs = 30;
    let underWay = 0;
    let most = 0;
    const names = Array.from({ length: 600 }, (_, i) => `s${i}`);
    for (const name of names) harness.cached.set(name, outcome("confirmed"));
    const calls = [...names, ...names].map(async (signature) => {
      most = Math.max(most, ++underWay);
      const answers = await harness.reader.read([{ signature, isOld: false }]);
      underWay--;
      return answers.get(signature)?.commitment;
    });
    await harness.clock.advance(29);
    expect(harness.requests.map(({ signatures }) => signatures.length)).toEqual([256]);
    await harness.clock.advance(70);
    expect(harness.requests.length).toBe(1);
    await harness.clock.advance(400);
    expect(new Set(await Promise.all(calls))).toEqual(new Set(["confirmed"]));
    expect(most).toBe(1_200);
    expect(harness.signatures.toSorted()).toEqual(names.toSorted());
    expect(harness.requests.map(({ signatures }) => signatures.length)).toEqual([256, 256, 88]);
  });

  it("limits waiting signatures to 1,024", async () => {
    const harness = new Harness();
    const many = Array.from({ length: 2_000 }, (_, i) => `s${i}`);
    const results = await harness.read(...many);
    expect(results.filter((one) => one === "unknown").length).toBe(1_024);
    expect(results.filter((one) => one === undefined).length).toBe(976);
    expect(harness.signatures.length).toBe(1_024);
  });

  it("queries the history for old signatures, and unknown ones not again immediately", async () => {
    const harness = new Harness();
    harness.history.set("a", outcome("finalized"));
    expect(await harness.read("a")).toEqual(["unknown"]);
    await harness.clock.advance(500);
    expect(await harness.readOld("a", "b")).toEqual(["finalized", "unknown"]);
    expect(harness.requests.at(-1)).toEqual({ signatures: ["a", "b"], searchHistory: true });
    await harness.clock.advance(9_000);
    expect(await harness.readOld("b")).toEqual(["unknown"]);
    expect(harness.requests.length).toBe(2);
    await harness.clock.advance(2_000);
    expect(await harness.readOld("b")).toEqual(["unknown"]);
    expect(harness.requests.length).toBe(3);
  });

  it("omits statuses while the node fails, pauses for a second, and warns", async () => {
    const harness = new Harness();
    harness.failure = new Error("away");
    expect(await harness.read("a")).toEqual([undefined]);
    expect(await harness.read("a", "b")).toEqual([undefined, undefined]);
    expect(harness.requests.length).toBe(1);
    expect(harness.warnings).toEqual(["bundle statuses: the node did not answer: away"]);
    harness.failure = null;
    harness.cached.set("a", outcome("confirmed"));
    await harness.clock.advance(1_000);
    expect(await harness.read("a")).toEqual(["confirmed"]);
  });

  it("does not block calls on a slow node, and uses its late response", async () => {
    const harness = new Harness();
    harness.answerMs = 6_000;
    harness.cached.set("a", outcome("finalized"));
    expect(await harness.read("a")).toEqual([undefined]);
    expect(harness.tookMs).toBeLessThanOrEqual(2_002);
    expect(await harness.read("a")).toEqual([undefined]);
    expect(harness.requests.length).toBe(1);
    await harness.clock.advance(3_000);
    expect(await harness.read("a")).toEqual(["finalized"]);
    expect(harness.requests.length).toBe(1);
  });

  it("drops a processed status that the node no longer reports", async () => {
    const harness = new Harness();
    harness.cached.set("a", outcome("processed"));
    expect(await harness.read("a")).toEqual(["processed"]);
    harness.cached.clear();
    await harness.clock.advance(500);
    expect(await harness.read("a")).toEqual(["unknown"]);
    harness.failure = new Error("away");
    await harness.clock.advance(500);
    expect(await harness.read("a")).toEqual([undefined]);
  });
});
