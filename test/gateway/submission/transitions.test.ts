// The table of transitions: invariants for every sequence of events, and the same table in the
// documentation.

import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  type Effect,
  type EventKind,
  effects,
  eventKinds,
  eventOfEnd,
  eventOfFoundEnd,
  isEndState,
  phaseOf,
  type TransactionState,
  transactionStates,
  transition,
  transitions,
} from "../../../src/gateway/submission/transitions.ts";
import { endStates } from "../../../src/gateway/submission/types.ts";

const phases = ["new", "open", "in_block", "ended"] as const;

/** Events of an account that joins after the end. */
const afterEnd: readonly Effect[] = ["record", "persist", "notify", "repeat_end", "count_late"];

interface Run {
  readonly states: readonly TransactionState[];
  readonly done: readonly { readonly state: TransactionState; readonly effect: Effect }[];
}

function run(kinds: readonly EventKind[]): Run {
  const states: TransactionState[] = ["new"];
  const done: { state: TransactionState; effect: Effect }[] = [];
  for (const kind of kinds) {
    const state = states.at(-1) ?? "new";
    const { to, effects: all } = transition(state, kind);
    for (const effect of all) done.push({ state, effect });
    states.push(to);
  }
  return { states, done };
}

const sequences = fc.array(fc.constantFrom(...eventKinds), { maxLength: 40 });
const isOver = (state: TransactionState) => phaseOf(state) === "ended";

describe("transitions", () => {
  it("reach at most one end, which is absorbing", () => {
    const property = fc.property(sequences, (kinds) => {
      const { states } = run(kinds);
      const first = states.findIndex(isOver);
      const after = first < 0 ? [] : states.slice(first);
      expect(new Set(after).size).toBe(first < 0 ? 0 : 1);
      expect(states.slice(0, first < 0 ? states.length : first).some(isOver)).toBe(false);
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it("lead from every awaiting state to the end that the last status gives", () => {
    const property = fc.property(sequences, fc.constantFrom(...endStates), (kinds, end) => {
      const before = run(["accepted", ...kinds]).states.at(-1) ?? "new";
      const { to } = transition(before, eventOfEnd[end]);
      expect(to).toBe(isOver(before) ? before : end);
      const found = transition(before, eventOfFoundEnd[end], end);
      expect(found.to).toBe(isOver(before) ? before : end);
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it("start and finish everything once: observing, counting, closing, reporting the end", () => {
    const property = fc.property(sequences, (kinds) => {
      const { states, done } = run(kinds);
      const count = (...names: readonly Effect[]) =>
        done.filter(({ effect }) => names.includes(effect)).length;
      const hasBegun = states.some((state) => state === "open" || isOver(state));
      const hasEnded = states.some(isOver);
      expect(count("observe")).toBe(hasBegun ? 1 : 0);
      expect(count("stop_observing")).toBe(hasEnded ? 1 : 0);
      expect(count("close", "drop")).toBe(hasEnded ? 1 : 0);
      expect(count("count_end")).toBeLessThanOrEqual(hasEnded ? 1 : 0);
      for (const { state, effect } of done) {
        expect(effects).toContain(effect);
        if (isOver(state)) expect(afterEnd).toContain(effect);
      }
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it("report a landed tip only for landed transactions, and remove all others", () => {
    const property = fc.property(sequences, (kinds) => {
      const { states, done } = run(kinds);
      let isReported = false;
      for (const { effect } of done) {
        if (effect === "report_tip" || effect === "confirm_tip") isReported = true;
        if (effect === "retract_tip") isReported = false;
      }
      const last = states.at(-1) ?? "new";
      if (isOver(last) && last !== "landed") expect(isReported).toBe(false);
      const isConfirmed = done.some(({ effect }) => effect === "confirm_tip");
      if (isConfirmed) expect(last).toBe("landed");
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it("stop offers before an end is reported, and report it after it is in the timeline", () => {
    for (const kind of Object.values(eventOfEnd)) {
      for (const state of ["open", "in_block"] as const) {
        const all = transition(state, kind).effects;
        const order = (["close", "stop_offering", "record", "persist", "notify"] as const).map(
          (effect) => all.indexOf(effect),
        );
        expect(order[0]).toBeGreaterThanOrEqual(0);
        expect(order).toEqual(order.toSorted((a, b) => a - b));
      }
    }
  });

  it("contain every state and effect, and no other", () => {
    const cells = eventKinds.flatMap((kind) =>
      phases.flatMap((phase) => transitions[kind][phase] ?? []),
    );
    expect(new Set(cells.flatMap(({ effects: all }) => all))).toEqual(new Set(effects));
    const reached = new Set<string>(["new", ...cells.map(({ to }) => to)]);
    expect(transactionStates.filter((state) => !reached.has(state) && !isEndState(state))).toEqual(
      [],
    );
    expect(endStates.filter((state) => transition("open", eventOfEnd[state]).to !== state)).toEqual(
      [],
    );
  });
});

describe("docs/transaction-status.md", () => {
  it("shows the table", () => {
    const rows = readFileSync("docs/transaction-status.md", "utf8")
      .split("\n")
      .map((line) => line.split("|").map((text) => text.trim().replaceAll("`", "")))
      .filter((columns) => columns.length === 9 && eventKinds.some((kind) => kind === columns[1]));
    const shown = rows.map(([, kind, , , ...cells]) => [kind, ...cells.slice(0, 4)]);
    const expected = eventKinds.map((kind) => [
      kind,
      ...phases.map((phase) => transitions[kind][phase]?.to ?? ""),
    ]);
    expect(shown).toEqual(expected);
    const reported = rows.filter((columns) => columns[3] !== "").map((columns) => columns[1]);
    const reportingStates = eventKinds.filter((kind) =>
      Object.values(transitions[kind]).some(({ effects: all }) => all.includes("notify")),
    );
    expect(reported).toEqual(reportingStates);
  });
});
