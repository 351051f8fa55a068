// Entries of the page of evidence (docs/proof.md): each claim with the one command that repeats it.

import { sandboxSenders } from "../../src/sandbox/sender-sandbox.ts";

export interface ProofEntry {
  readonly name: string;
  readonly title: string;
  /** Sentences for readers: the claim, and how it is checked. */
  readonly claim: string;
  /** Shell command in the root of the project. */
  readonly command: string;
  /**
   * How the command's result becomes a table. "benchmark": the section `name` of bench/results/latest.json, which
   * the command itself stores. "tests": vitest's JSON report. "land": the last line of `shredway land --json`.
   */
  readonly kind: "benchmark" | "tests" | "land";
}

function tests(...files: readonly string[]): string {
  return `SHREDWAY_TESTS=all npx vitest run ${files.join(" ")}`;
}

const senders = sandboxSenders.map(
  ({ name, delayMs, drop }) => `${name} ${delayMs} ms and ${Math.round(drop * 100)} %`,
);

export const proofEntries: readonly ProofEntry[] = [
  {
    name: "peers",
    title: "The relay next to other programs",
    claim:
      "Whole relays take turns on the same CPU, between network namespaces: Shredway, which checks every shred, and the programs that are " +
      "installed or named. Processor time, latency, losses and repetitions are measured. An earlier measurement next to the relays of " +
      "Jito and DoubleZero is in [performance.md](performance.md).",
    command: "npm run bench -- peers --report",
    kind: "benchmark",
  },
  {
    name: "attacks",
    title: "Forged shreds",
    claim:
      "No forged shred is forwarded, and an attacker silences no genuine one. Attackers send as strangers, as another source, and with " +
      "the address of the only source.",
    command: "npm run bench -- attacks --report",
    kind: "benchmark",
  },
  {
    name: "landing",
    title: "Landing of transactions",
    claim:
      `\`shredway land\` finds known differences between three senders of a sandbox. Their delays and shares of drops are: ${senders.join(", ")}. ` +
      "Use the same command with your own senders ([land.md](land.md)).",
    command: "npm run --silent compile && node dist/tools/shredway.js land --sandbox --json",
    kind: "land",
  },
  {
    name: "intervals",
    title: "Intervals of the landing benchmark",
    claim:
      "The intervals contain the truth in at least 95 of 100 seeded runs. A run without a difference claims none in at least 95 of 100. " +
      "A run that was killed 20 times pays nothing twice and keeps its budget.",
    command: tests("test/tools/land/statistics.test.ts", "test/tools/land/kill.test.ts"),
    kind: "tests",
  },
  {
    name: "crashes",
    title: "Kills during writes",
    claim:
      "Nothing acknowledged is lost, and nothing counts twice, if the service, its database or one of its processes is killed " +
      "(SIGKILL) at a random moment. The tests need root, PostgreSQL and the other programs of the complete run " +
      "([contributing.md](contributing.md)).",
    command: tests(
      "test/integration/kill-rounds.test.ts",
      "test/integration/gateway-crash.test.ts",
      "test/integration/shreds-crash.test.ts",
      "test/integration/quic-crash.test.ts",
      "test/platform/store/crash.test.ts",
      "test/shreds/tiers/leader-tiers-crash.test.ts",
      "test/shreds/tiers/tier-leadership-crash.test.ts",
    ),
    kind: "tests",
  },
  {
    name: "statements",
    title: "Signed statements",
    claim:
      "Changed receipts are rejected, and receipts of an earlier key still verify. A second implementation of Ed25519 agrees with every " +
      "signature. The same holds for tip statistics.",
    command: tests(
      "test/client/receipts.test.ts",
      "test/gateway/receipts",
      "test/gateway/endpoints/signed-tip-floor.test.ts",
    ),
    kind: "tests",
  },
];
