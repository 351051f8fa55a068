// The section "peers" of the benchmark: programs that it finds, and its report.

import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { findRelayPeers, peerWords } from "../../bench/load/relay-peers.ts";
import { parseLine } from "../../bench/report/lines.ts";
import { peersSection } from "../../bench/sections/peers-section.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

type Fields = Record<string, string | number | boolean>;
const line = (fields: Fields) => parseLine(JSON.stringify(fields));
const rounds = [1, 2, 3, 4, 5];
const row = { destinations: 10, burst: 32 };

interface Measured {
  readonly ns: number;
  readonly lost?: number;
  readonly disturbed?: boolean;
}

function linesOf(contestants: Record<string, Measured>, samples = 100_000) {
  return Object.entries(contestants).flatMap(
    ([contestant, { ns, lost = 0, disturbed = false }]) => [
      ...rounds.map((round) =>
        line({
          kind: "peers",
          contestant,
          ...row,
          round,
          disturbed,
          samples: samples / 5,
          delivered: 1000,
          cpu_ns: ns * 1000,
          last_p50_ns: ns * 10,
          last_p99_ns: ns * 20,
        }),
      ),
      line({
        kind: "peers_total",
        contestant,
        ...row,
        copies: 3,
        rate: 5000,
        samples,
        lost,
        repeated: 0,
        rounds: disturbed ? 0 : 5,
        rounds_all: 5,
        first_p50_ns: ns,
        first_p99_ns: ns * 2,
        last_p50_ns: ns * 10,
        last_p99_ns: ns * 20,
        last_p999_ns: 123_456,
        first_histogram: "80:3",
        last_histogram: "80:3 88:1",
      }),
    ],
  );
}

describe("the section peers", () => {
  it("compares with the best other program that lost nothing", () => {
    const contestants = {
      shredway: { ns: 500 },
      forwarder: { ns: 100 },
      jito: { ns: 1000 },
      lossy: { ns: 50, lost: 1 },
    };
    const { findings, tables, histograms } = peersSection(linesOf(contestants), []);
    const name = "10 destinations, bursts of 32";
    const ratios = findings.filter(({ unit }) => unit === "×");
    expect(ratios.map(({ value, verdict }) => [value.median, verdict])).toEqual([
      [0.5, "met"],
      [0.5, "met"],
      [0.5, "met"],
    ]);
    expect(tables[0]?.title).toBe(`${name}, 5,000 shreds/s`);
    expect(tables[0]?.rows[0]?.join(" ")).toContain("123 100000 0 0 5 of 5");
    expect(histograms?.[`shredway, ${name}, last`]).toEqual([
      [1024, 3],
      [2048, 1],
    ]);
  });

  it("misses a target if it is slower, and gives no verdict without another program", () => {
    const verdicts = (contestants: Parameters<typeof linesOf>[0]) =>
      peersSection(linesOf(contestants), []).findings.map(({ verdict }) => verdict);
    expect(verdicts({ shredway: { ns: 500, lost: 3 }, socat: { ns: 400 } })).toEqual([
      "missed",
      "missed",
      "missed",
      "missed",
    ]);
    expect(verdicts({ shredway: { ns: 500, disturbed: true }, socat: { ns: 400 } })).toEqual(
      Array(4).fill("inconclusive"),
    );
    expect(verdicts({ shredway: { ns: 500 } })).toEqual([
      "met",
      "inconclusive",
      "inconclusive",
      "inconclusive",
    ]);
  });

  it("shows no p99.9 of fewer than 100,000 shreds, and what was skipped", () => {
    const skipped = line({ kind: "peers_skipped", what: "socat", why: "it did not listen" });
    const lines = [...linesOf({ shredway: { ns: 500 } }, 99_995), skipped];
    const { tables, notes } = peersSection(lines, ["jito: not found"]);
    expect(tables[0]?.rows[0]).toContain("–");
    expect(notes).toContain("Skipped jito: not found.");
    expect(notes).toContain("Skipped socat: it did not listen.");
  });
});

describe("findRelayPeers", () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  it("finds programs by path with their arguments, and says what is missing", () => {
    const program = join(temporaryFolder(), "proxy");
    writeFileSync(program, "");
    chmodSync(program, 0o755);
    vi.stubEnv("PATH", "");
    vi.stubEnv("SHREDWAY_PEER_JITO", program);
    vi.stubEnv("SHREDWAY_PEER_DOUBLEZERO", program);
    const { peers, missing } = findRelayPeers();
    expect(peers.map(({ name }) => name)).toEqual(["jito"]);
    expect(missing).toContain(
      "doublezero: expected its arguments in SHREDWAY_PEER_DOUBLEZERO_ARGUMENTS",
    );
    expect(missing).toContain("socat: not found (socat)");
    vi.stubEnv("SHREDWAY_PEER_DOUBLEZERO_ARGUMENTS", "--port {port} {list:/}");
    expect(peerWords(findRelayPeers().peers).slice(-10)).toEqual([
      "--peer-copies",
      "3",
      "--peer-word",
      program,
      "--peer-word",
      "--port",
      "--peer-word",
      "{port}",
      "--peer-word",
      "{list:/}",
    ]);
  });

  it("refuses a path that cannot be executed", () => {
    const path = join(temporaryFolder(), "proxy");
    writeFileSync(path, "", { mode: 0o600 });
    vi.stubEnv("SHREDWAY_PEER_JITO", path);
    expect(() => findRelayPeers()).toThrow(
      `SHREDWAY_PEER_JITO: expected the path of an executable file, got "${path}"`,
    );
  });
});
