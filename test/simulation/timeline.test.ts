// The page of a run: a mark and a line of the table for each line of the trace.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { guarded } from "./guard.ts";
import { drawScenario } from "./quiet-scenario.ts";
import { timelineOf } from "./timeline.ts";
import { World } from "./world.ts";

const event = (number: number, action: object): string =>
  `     100.000       100 ms  #${number}  ${JSON.stringify(action)}`;
const count = (text: string, part: RegExp): number => text.match(part)?.length ?? 0;

describe("a timeline", () => {
  it("has a lane for each participant, in a fixed order", () => {
    const page = timelineOf({
      title: "t",
      lines: [
        "      26.450  service 1 runs",
        event(0, { kind: "slot", plan: { slot: 1010 } }),
        event(1, { kind: "send", customer: 1 }),
        event(2, { kind: "forge", source: "fast" }),
        event(3, { kind: "reload" }),
        event(4, { kind: "crash", downMs: 5 }),
        "     120.000  customer-0 added 5.6.0.0:9001",
        "     120.000  challenge 1 to 5.6.0.0:9001",
        '              log {"level":"warn"}',
      ],
    });
    const lanes = [...page.matchAll(/<text x="6"[^>]*>([^<]+)</g)].map(([, lane]) => lane);
    expect(lanes).toEqual([
      "service",
      "slots",
      "surroundings",
      "sources",
      "destinations",
      "customer 0",
      "customer 1",
      "log",
      "packets",
    ]);
    expect(count(page, /class="event"><title>/g)).toBe(5);
    expect(count(page, /class="result"><title>/g)).toBe(4);
    expect(count(page, /<tr id=/g)).toBe(9);
    // The log has no time: it belongs to the line before it.
    expect(page).toContain("<title>120 ms: log {&quot;level&quot;:&quot;warn&quot;}</title>");
    expect(page).toContain("All invariants hold.");
  });

  it("marks a violation at the end of the run, and escapes what it shows", () => {
    const lines = ["      10.000  <b>", "      20.000  3 packets arrive, 4 leave"];
    const page = timelineOf({ title: "a & b", lines, violation: "nothing < everything" });
    expect(page).toContain('class="violation"><title>20 ms: nothing &lt; everything</title>');
    expect(page).toContain("<h1>a &amp; b</h1>");
    expect(page).toContain("<title>20 ms: 3 packets arrive, 4 leave</title>");
    expect(page).not.toContain("<b>");
  });

  it("draws every line of a real run", async () => {
    const folder = mkdtempSync(join(tmpdir(), "timeline-"));
    const lines: string[] = [];
    const trace = (line: string): void => void lines.push(line);
    try {
      const events = drawScenario(7, 20);
      await guarded(() => new World({ seed: 7, events, folder, trace }).run());
      const page = timelineOf({ title: "seed 7", lines });
      const packets = lines.filter((line) => line.endsWith(" leave")).length;
      expect(packets).toBeGreaterThan(20);
      expect(count(page, /class="in"/g)).toBe(packets);
      expect(count(page, /<tr id=/g)).toBe(lines.length - packets);
      expect(count(page, /<tr id="[^"]+" class="event"/g)).toBe(events.length);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
