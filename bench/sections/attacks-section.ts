// Hostile packets beside genuine shreds: what they achieve, and what they cost.

import { type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { perRound, type Rounds, type Summary, summarise } from "../report/statistics.ts";
import { number } from "../report/table.ts";
import { type Finding, finding, type Section } from "./section.ts";

const baseline = "none";

interface AttackLines {
  readonly name: string;
  readonly lines: readonly Line[];
}

/** The lines of all rounds, by attack, in the order of the program. */
function byAttack(lines: readonly Line[]): AttackLines[] {
  const names = new Set(lines.map((line) => textOf(line, "attack")));
  return [...names].map((name) => ({
    name,
    lines: lines.filter((line) => textOf(line, "attack") === name),
  }));
}

const total = (lines: readonly Line[], key: string): number =>
  lines.reduce((sum, line) => sum + numberOf(line, key), 0);

function rounds(lines: readonly Line[], key: string): Rounds {
  return new Map(lines.map((line) => [numberOf(line, "round"), numberOf(line, key)]));
}

const share = (part: number, all: number): string =>
  part === 0 ? "0" : `${((100 * part) / all).toFixed(2)} %`;

function deliveredSets({ lines }: AttackLines): Summary {
  return summarise(lines.map((line) => 1 - numberOf(line, "sets_lost") / numberOf(line, "sets")));
}

function findings(attacks: readonly AttackLines[], latency: ReadonlyMap<string, Summary>) {
  const found: Finding[] = [];
  for (const attack of attacks) {
    const ratio = latency.get(attack.name);
    if (attack.name.includes("another source") && ratio) {
      const what = `median latency beside ${attack.name}, 15,000/s`;
      found.push(finding(what, ratio, { target: 1.3, unit: "×" }));
    }
    if (attack.name.includes("only source's address")) {
      const what = `FEC sets delivered beside ${attack.name}, 40,000/s`;
      const limit = { target: 0.95, unit: "of all", bound: "at least" } as const;
      found.push(finding(what, deliveredSets(attack), limit));
    }
  }
  return found;
}

export function attacksSection(all: readonly Line[]): Section {
  const attacks = byAttack(ofKind(all, "attack").filter((line) => numberOf(line, "round") > 0));
  const none = attacks.find(({ name }) => name === baseline);
  const latency = new Map<string, Summary>();
  for (const { name, lines } of attacks) {
    if (!none || name === baseline) continue;
    const both = [rounds(lines, "p50_ns"), rounds(none.lines, "p50_ns")];
    latency.set(name, summarise(perRound(both, ([own = 0, alone = 1]) => own / alone)));
  }
  const latencyText = (name: string) => {
    const ratio = latency.get(name);
    if (ratio?.median === 0) return "earlier: from the attacker";
    return ratio ? `${number(ratio.median)} × (${number(ratio.low)}–${number(ratio.high)})` : "1";
  };
  return {
    name: "attacks",
    title: "Hostile packets",
    notes: [
      "Genuine shreds of one source (60 FEC sets a second, one at a time) to one destination, by " +
        "socket, beside an attacker. A FEC set is lost if fewer than 32 of its 64 shreds arrive.",
    ],
    tables: [
      {
        title: "Effect on genuine shreds, all rounds together; latency against the same round",
        columns: [
          "attack",
          "rate",
          "attempts",
          "forwarded",
          "silenced",
          "FEC sets lost",
          "repeated",
          "median latency",
        ],
        rows: attacks.map(({ name, lines }) => [
          name,
          name === baseline
            ? "–"
            : `${(numberOf(lines[0] ?? new Map(), "rate")).toLocaleString("en-US")}/s`,
          total(lines, "attempts").toLocaleString("en-US"),
          total(lines, "forwarded").toLocaleString("en-US"),
          share(total(lines, "silenced"), total(lines, "shreds")),
          share(total(lines, "sets_lost"), total(lines, "sets")),
          total(lines, "repeated").toLocaleString("en-US"),
          latencyText(name),
        ]),
      },
    ],
    findings: findings(attacks, latency),
    values: Object.fromEntries(
      [...latency].map(([name, ratio]) => [`${name}, median latency ratio`, ratio]),
    ),
  };
}
