// Member lists: merged, refreshed, kept over failures, changed by reloads.

import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { createLogger } from "../../../src/core/log.ts";
import { PartnerMembers } from "../../../src/gateway/tracker/partner-members.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { addressOf, wallet } from "../../support/transactions/chain.ts";

const [a, b, c, d] = [1, 2, 3, 4].map((number) => addressOf(wallet(number)));

const port = (identity = "") => `"${identity}": "http://127.0.0.1:1"`;
const routes = `
routes:
  - { name: one, kind: alt-partner, leaders: { ${port(a)}, ${port(b)} } }
  - { name: two, kind: alt-partner, leaders: { ${port(b)}, ${port(c)} } }
  - { name: three, kind: swqos, url: "http://127.0.0.1:1" }
`;

function configOf(tracker: Record<string, unknown>, more = "") {
  const relay = "relay: { shredVersion: 1, tiers: [tier-1], authentication: off }";
  return parseConfig(`${relay}\ntracker: ${JSON.stringify(tracker)}\n${more}`, "a.yaml");
}

/** URLs respond only after the test sets a response. */
function open(tracker: Record<string, unknown>, more = "") {
  const clock = new ManualClock();
  const lines: string[] = [];
  const requests: string[] = [];
  const published: string[][] = [];
  const answers: Record<string, () => Promise<ReadonlySet<string>>> = {};
  const watch = new PartnerMembers(
    {
      clock,
      log: createLogger({ stream: { write: (line) => void lines.push(line) } }),
      fetchMembers: (url) => {
        requests.push(url);
        return (answers[url] ?? (() => Promise.reject(new Error("no answer"))))();
      },
      publish: (members) => void published.push([...members]),
    },
    configOf(tracker, more),
  );
  closing(watch);
  const respond = (url: string, ...members: (string | undefined)[]) => {
    answers[url] = () => Promise.resolve(new Set(members.map(String)));
  };
  const fail = (url: string, text = "no answer") => {
    answers[url] = () => Promise.reject(new Error(text));
  };
  /** Responds when the returned function is called. */
  const hang = (url: string) => {
    let settle: (members: ReadonlySet<string>) => void = () => undefined;
    const promise = new Promise<ReadonlySet<string>>((resolve) => (settle = resolve));
    answers[url] = () => promise;
    return (...members: (string | undefined)[]) => settle(new Set(members.map(String)));
  };
  const warnings = () =>
    lines.filter((line) => line.includes("member list is not available")).length;
  return { clock, lines, requests, published, watch, respond, fail, hang, warnings };
}

const url = "http://list.example/one";
const minutes = (count: number) => count * 60_000;

describe("PartnerMembers", () => {
  it("uses the configured members without denied ones", () => {
    expect(open({ members: [a, b], denied: [b, d] }).published).toEqual([[a]]);
  });

  it("uses the leaders of the partner's routes if no members are configured", () => {
    const { published, requests } = open({ denied: [c] }, routes);
    expect(published).toEqual([[a, b]]);
    expect(requests).toEqual([]);
    expect(open({ members: [d] }, routes).published).toEqual([[d]]);
    expect(open({ members: [] }, routes).published).toEqual([[]]);
  });

  it("adds the members of the URL, refreshed periodically, and publishes only changes", async () => {
    const { clock, published, requests, respond } = open({
      members: [a],
      denied: [c],
      url,
      refreshMinutes: 5,
    });
    expect([published, requests]).toEqual([[[a]], [url]]);
    respond(url, a, b, c);
    await clock.advance(15_000); // the first one failed
    expect(published).toEqual([[a], [a, b]]);
    await clock.advance(minutes(5) - 1);
    expect(requests).toHaveLength(2);
    await clock.advance(1);
    expect(requests).toHaveLength(3);
    respond(url, d);
    await clock.advance(minutes(5));
    expect(published).toEqual([[a], [a, b], [a, d]]);
    respond(url);
    await clock.advance(minutes(5));
    expect(published.at(-1)).toEqual([a]);
  });

  it("keeps the last good list during failures without flooding the log", async () => {
    const { clock, published, requests, respond, fail, warnings, lines } = open({ url });
    await clock.advance(0);
    expect(lines.join()).toContain("only configured members count: no answer");
    respond(url, a);
    await clock.advance(15_000);
    expect(published.at(-1)).toEqual([a]);
    expect(lines.join()).toContain("available again");
    fail(url, "list of cats");
    await clock.advance(minutes(60));
    const before = requests.length;
    await clock.advance(minutes(10));
    expect(requests.length - before).toBe(40);
    expect(published.at(-1)).toEqual([a]);
    expect(lines.join()).toContain("the last list stays in force: list of cats");
    expect(warnings()).toBe(4); // the very first, then numbers 1, 21 and 41
    fail(url, "list of dogs");
    await clock.advance(15_000);
    expect(warnings()).toBe(5);
    respond(url, b);
    await clock.advance(15_000);
    expect(published.at(-1)).toEqual([b]);
  });

  it("applies a reload: members, denied ones, interval and URL", async () => {
    const { clock, published, requests, watch, respond } = open({ members: [a], url });
    const other = "http://list.example/two";
    respond(url, b);
    respond(other, c);
    await clock.advance(15_000);
    watch.apply(configOf({ members: [a, d], denied: [a], url }));
    expect(published.at(-1)).toEqual([d, b]);
    expect(requests).toHaveLength(2);
    watch.apply(configOf({ members: [d], url, refreshMinutes: 1 }));
    await clock.advance(minutes(1));
    expect(requests).toHaveLength(4); // immediately, and after a minute
    watch.apply(configOf({ members: [d], url: other }));
    expect(published.at(-1)).toEqual([d]); // the other list is unknown
    await clock.advance(0);
    expect(published.at(-1)).toEqual([d, c]);
    watch.apply(configOf({ members: [d] }));
    expect(published.at(-1)).toEqual([d]);
    await clock.advance(minutes(120));
    expect(requests).toHaveLength(5);
    expect(clock.pending).toBe(0);
  });

  it("ignores responses of a former URL", async () => {
    const { clock, published, watch, respond, hang } = open({ url });
    const answer = hang(url);
    await clock.advance(15_000);
    watch.apply(configOf({ members: [b] }));
    answer(a);
    await clock.advance(0);
    expect(published).toEqual([[], [b]]);
    watch.apply(configOf({ members: [b], url }));
    respond(url, c);
    watch.close();
    await clock.advance(minutes(60));
    expect(published).toEqual([[], [b]]);
    expect(clock.pending).toBe(0);
  });
});
