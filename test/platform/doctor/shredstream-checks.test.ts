// The checks of block engines, with facts from real connections.

import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { measures } from "../../../src/platform/doctor/measures.ts";
import { checkShredstream } from "../../../src/platform/doctor/shredstream-checks.ts";
import {
  readShredstreamFacts,
  type ShredstreamFact,
} from "../../../src/platform/doctor/shredstream-facts.ts";
import { closing } from "../../support/closing.ts";
import { freePort } from "../../support/network/free-ports.ts";
import { TestBlockEngine } from "../../support/shredstream/test-block-engine.ts";

const relayOf = (more: string, listen = "0.0.0.0:20000") =>
  parseConfig(
    `relay:
  listen: "${listen}"
  shredVersion: 1
  leaders: { file: leaders.json }
  sources: [ { name: jito, kind: shredstream, tier: tier-1, shredstream: { keyFile: k, regions: [ny], ${more} } } ]
`,
    "/etc/a.yaml",
  ).relay;

const fact: ShredstreamFact = {
  name: "jito",
  key: "url",
  target: "engine:443",
  error: null,
  connectMs: 2,
  address: "192.0.2.1",
  isOwn: true,
  refusal: null,
};

describe("checkShredstream", () => {
  it.each<[Partial<ShredstreamFact>, string, string | null]>([
    [{}, "ok", null],
    [
      { error: "ECONNREFUSED" },
      "fail",
      "correct shredstream.url of the source, or permit outgoing TCP",
    ],
    [
      { error: "ECONNREFUSED", key: "authUrl" },
      "fail",
      "correct shredstream.authUrl of the source",
    ],
    [{ key: "authUrl", isOwn: false, refusal: "10.0.0.1 is private" }, "ok", null],
    [{ isOwn: false }, "warn", "do not support NAT"],
    [{ refusal: "10.0.0.1 is an address of class private" }, "warn", "public address"],
  ])("judges %j", (changes, level, remedy) => {
    const [finding] = checkShredstream([{ ...fact, ...changes }]);
    expect(finding).toMatchObject({ check: "shredstream", level });
    expect(finding?.remedy ?? "").toContain(remedy ?? "");
    expect(measures).toHaveProperty("shredstream");
  });

  it("connects to the block engine and to its authentication service, and sends nothing", async () => {
    const engine = closing(await TestBlockEngine.open());
    const port = await freePort();
    const relay = relayOf(`url: "${engine.url}", authUrl: "http://127.0.0.1:${port}"`);
    const facts = await readShredstreamFacts(relay, systemClock);
    expect(facts).toMatchObject([
      { key: "url", target: `127.0.0.1:${engine.port}`, error: null, address: "127.0.0.1" },
      { key: "authUrl", target: `127.0.0.1:${port}`, address: null },
    ]);
    expect(facts[0]?.refusal).toContain("loopback");
    expect(facts[1]?.error).toContain("ECONNREFUSED");
    expect(engine.calls).toEqual([]);
  });

  it("connects in the address family of the relay's port", async () => {
    const engine = closing(await TestBlockEngine.open());
    const url = `url: "http://localhost:${engine.port}"`;
    const [overIpv4] = await readShredstreamFacts(relayOf(url), systemClock);
    expect(overIpv4?.address).toBe("127.0.0.1");
    const [overIpv6] = await readShredstreamFacts(relayOf(url, "[::]:20000"), systemClock);
    expect(overIpv6?.address).not.toBe("127.0.0.1");
  });

  it("names an address that this machine does not have", async () => {
    const engine = closing(await TestBlockEngine.open());
    const relay = relayOf(`url: "${engine.url}", publicAddress: 192.0.2.77`);
    const facts = await readShredstreamFacts(relay, systemClock);
    expect(facts).toMatchObject([{ address: "192.0.2.77", isOwn: false, refusal: null }]);
  });
});
