// The table of sending: invariants for every sequence of events, and the same table in the
// documentation. simulation.test.ts tests the dispatcher that applies it.

import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  isSendingOver,
  type SendingEventKind,
  type SendingState,
  sendingEventKinds,
  sendingStates,
  sendingTransitions,
} from "../../../src/gateway/submission/sending.ts";

function run(kinds: readonly SendingEventKind[]): SendingState[] {
  const states: SendingState[] = ["idle"];
  for (const kind of kinds) {
    const state = states.at(-1) ?? "idle";
    states.push(sendingTransitions[kind][state]?.to ?? state);
  }
  return states;
}

const sequences = fc.array(fc.constantFrom(...sendingEventKinds), { maxLength: 40 });

describe("sending", () => {
  it("ends finally when it is stopped or no route is left", () => {
    const property = fc.property(
      sequences,
      fc.constantFrom("sending_stopped" as const, "routes_exhausted" as const),
      sequences,
      (before, end, after) => {
        const states = run([...before, end, ...after]).slice(before.length + 1);
        expect(states.every(isSendingOver)).toBe(true);
        expect(new Set(states).size).toBe(1);
      },
    );
    fc.assert(property, { numRuns: 2_000 });
  });

  it("makes attempts only when due, and a held submission becomes due first", () => {
    const property = fc.property(sequences, (kinds) => {
      const states = run(kinds);
      for (const [i, state] of states.slice(1).entries()) {
        const before = states[i];
        if (state === "due" && before !== "due") expect(["scheduled", "held"]).toContain(before);
        if (before === "held" && state !== "held") {
          expect(state === "due" || isSendingOver(state)).toBe(true);
        }
        if (kinds[i] === "attempt_started") expect(state).not.toBe("due");
      }
    });
    fc.assert(property, { numRuns: 2_000 });
  });

  it("schedules the next attempt after every attempt except the last", () => {
    for (const kind of sendingEventKinds) {
      const to = sendingTransitions[kind].idle?.to;
      const isFollowed = /^(attempt_(made|failed|lost|lost_again)|resend_failed|landing_awaited)$/;
      if (isFollowed.test(kind)) expect([kind, to]).toEqual([kind, "scheduled"]);
    }
    expect(sendingTransitions.last_attempt_made.scheduled?.to).toBe("idle");
  });

  it("reaches every state", () => {
    const targets = sendingEventKinds.flatMap((kind) =>
      Object.values(sendingTransitions[kind]).map(({ to }) => to),
    );
    expect(new Set(targets)).toEqual(new Set(sendingStates));
  });
});

describe("docs/transaction-status.md", () => {
  it("shows the table", () => {
    const rows = readFileSync("docs/transaction-status.md", "utf8")
      .split("\n")
      .map((line) => line.split("|").map((text) => text.trim().replaceAll("`", "")))
      .filter((cells) => cells.length === 8 && sendingEventKinds.some((kind) => kind === cells[1]));
    const waiting = ["idle", "scheduled", "due", "held"] as const;
    const expected = sendingEventKinds.map((kind) => [
      kind,
      ...waiting.map((state) => {
        const cell = sendingTransitions[kind][state];
        return cell && "delay" in cell ? `${cell.to}, ${cell.delay}` : (cell?.to ?? "");
      }),
    ]);
    expect(rows.map(([, kind, , ...cells]) => [kind, ...cells.slice(0, 4)])).toEqual(expected);
  });
});
