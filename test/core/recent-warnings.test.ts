import { describe, expect, it } from "vitest";
import { createLogger, problemsOf } from "../../src/core/log.ts";
import { problemsMax, RecentWarnings } from "../../src/core/recent-warnings.ts";

function logger() {
  const log = createLogger({ level: "info", stream: { write: () => true } });
  return { log, list: () => problemsOf(log).list };
}

describe("problems", () => {
  it("are the warnings and errors of the log, newest first, with their fields", () => {
    const { log, list } = logger();
    log.info("nothing");
    log.warn({ address: "192.0.2.1:9", excess: 2 }, "left out");
    log.child({ part: "relay" }).error({ error: "boom\nat line 1" }, "a handler failed");
    log.fatal("the end");
    expect(list().map(({ level, text }) => [level, text])).toEqual([
      ["fatal", "the end"],
      ["error", "a handler failed (part relay, error boom)"],
      ["warn", "left out (address 192.0.2.1:9, excess 2)"],
    ]);
    expect(list()[0]?.time).toMatch(/^\d{4}-\d\d-\d\dT/);
  });

  it("contain no keys and no secrets", () => {
    const { log, list } = logger();
    const key = `sw_${"A".repeat(44)}`;
    log.warn({ apiKey: key, url: `http://a/?api-key=${key}` }, `with ${key}`);
    expect(list()[0]?.text).toContain("[masked]");
    expect(JSON.stringify(list())).not.toContain(key);
  });

  it("are bounded: equal texts are counted, the oldest is dropped, and long ones are cut", () => {
    const { log, list } = logger();
    for (let i = 0; i < 1000; i++) log.warn("again");
    expect(list()).toMatchObject([{ text: "again", count: 1000 }]);
    for (let i = 0; i < 3 * problemsMax; i++) log.error(`fault ${i}`);
    expect(list().length).toBe(problemsMax);
    expect(list()[0]?.text).toBe(`fault ${3 * problemsMax - 1}`);
    log.warn("x".repeat(10_000));
    expect(list()[0]?.text.length).toBe(500);
  });

  it("are read from complete lines only", () => {
    const problems = new RecentWarnings();
    for (const line of [
      "",
      "{",
      '{"level":"warn"',
      '{"level":"warn"}',
      '{"level":"warn","time":7}',
    ]) {
      problems.add(line);
    }
    expect(problems.list).toEqual([]);
  });
});
