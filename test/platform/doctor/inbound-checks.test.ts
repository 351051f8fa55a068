// The way of a block engine's shreds into the machine: listeners, and the rules of nftables.

import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { checkInbound } from "../../../src/platform/doctor/inbound-checks.ts";
import { readInboundFacts } from "../../../src/platform/doctor/inbound-facts.ts";
import { measures } from "../../../src/platform/doctor/measures.ts";
import { firewallFactsIn } from "../../../src/platform/doctor/nft-rules.ts";
import type { ShredstreamFact } from "../../../src/platform/doctor/shredstream-facts.ts";

/** As `nft list ruleset` of Debian 12 prints it. */
const ruleset = (policy: string, rules: string, table = "inet filter") => `table ${table} {
	set allowed {
		type inet_service
		elements = { 22, 20000 }
	}

	chain input {
		type filter hook input priority filter; policy ${policy};
		ct state established,related accept
		iif "lo" accept
		tcp dport { 22, 20000 } accept
		${rules}
	}

	chain forward {
		type filter hook forward priority filter; policy drop;
	}
}
`;

describe("firewallFactsIn", () => {
  const chain = ["inet filter input"];
  it.each<[string, string, object]>([
    ["nothing", "", { dropping: [], namesPort: false }],
    ["an open chain", ruleset("accept", ""), { dropping: [], namesPort: false }],
    ["a default drop", ruleset("drop", ""), { dropping: chain, namesPort: false }],
    [
      "a last rule that drops",
      ruleset("accept", "counter packets 12 bytes 840 drop"),
      { dropping: chain, namesPort: false },
    ],
    [
      "a last rule that rejects",
      ruleset("accept", "reject with icmpx port-unreachable"),
      { dropping: chain, namesPort: false },
    ],
    ["a drop for one sender", ruleset("accept", "ip saddr 192.0.2.1 drop"), { dropping: [] }],
    ["the port", ruleset("drop", "udp dport 20000 accept"), { dropping: chain, namesPort: true }],
    ["a range", ruleset("drop", "udp dport 19000-21000 counter accept"), { namesPort: true }],
    ["a list", ruleset("drop", "udp dport { 53, 20000-20010 } accept"), { namesPort: true }],
    ["another port", ruleset("drop", "udp dport { 53, 20001-20010 } accept"), { namesPort: false }],
    ["the port refused", ruleset("drop", "udp dport 20000 drop"), { namesPort: false }],
    ["a table of IPv4", ruleset("drop", "", "ip filter"), { dropping: ["ip filter input"] }],
    ["a table of IPv6 only", ruleset("drop", "", "ip6 filter"), { dropping: [] }],
  ])("reads %s", (_, text, facts) => {
    expect(firewallFactsIn(text, 20_000, "ipv4")).toMatchObject(facts);
  });

  it("reads tables of IPv6 for a port of IPv6", () => {
    const facts = firewallFactsIn(ruleset("drop", "", "ip6 filter"), 20_000, "ipv6");
    expect(facts.dropping).toEqual(["ip6 filter input"]);
  });
});

const relayOf = (listen: string, more = "") =>
  parseConfig(
    `relay:
  listen: ${listen}
  shredVersion: 1
  leaders: { file: leaders.json }
  sources:
    - name: jito
      kind: shredstream
      tier: tier-1
      ${more}
      shredstream: { url: "http://127.0.0.1:1", keyFile: k, regions: [ny] }
`,
    "/etc/a.yaml",
  ).relay;

const target = (address: string | null): ShredstreamFact => ({
  name: "jito",
  key: "url",
  target: "engine:443",
  error: null,
  connectMs: 2,
  address,
  isOwn: true,
  refusal: null,
});

describe("checkInbound", () => {
  const findings = (listen: string, address: string | null, text: string | null, more = "") => {
    const facts = readInboundFacts(relayOf(listen, more), { run: () => text });
    return checkInbound(facts, [target(address)]);
  };

  it.each<[string, string | null, string, string]>([
    ['"0.0.0.0:20000"', "192.0.2.1", "ok", "which includes 192.0.2.1"],
    ['"192.0.2.1:20000"', "192.0.2.1", "ok", "which includes 192.0.2.1"],
    ['"10.0.0.1:20000"', "192.0.2.1", "fail", "10.0.0.1:20000, but shreds go to 192.0.2.1"],
    ['"[::]:20000"', "2001:db8::1", "ok", "[::]:20000, which includes 2001:db8::1"],
    ['"[2001:db8::2]:20000"', "2001:db8::1", "fail", "but shreds go to 2001:db8::1"],
    ['"0.0.0.0:20000"', null, "ok", "is unknown"],
  ])("compares the listener %s with the address %s", (listen, address, level, text) => {
    const [finding] = findings(listen, address, "");
    expect(finding).toMatchObject({ check: "shredstream-port", level });
    expect(finding?.finding).toContain(text);
    if (level === "fail") expect(finding?.remedy).toContain("set relay.listen to");
  });

  it("uses the port of the source", () => {
    const listen = '["10.0.0.1:20000", "0.0.0.0:20001"]';
    expect(findings(listen, "192.0.2.1", "", "port: 20001")[0]?.level).toBe("ok");
    expect(findings(listen, "192.0.2.1", "", "port: 20000")[0]?.level).toBe("fail");
  });

  it.each<[string | null, string, string]>([
    [null, "ok", "could not be read"],
    ["", "ok", "drops nothing by default; firewalls and routers outside"],
    [ruleset("drop", ""), "warn", "(inet filter input), and no rule names UDP port 20000"],
    [ruleset("drop", "udp dport 20000 accept"), "ok", "check that it accepts all senders"],
  ])("judges the rules of nftables: %j", (text, level, words) => {
    const finding = findings('"0.0.0.0:20000"', "192.0.2.1", text)[1];
    expect(finding).toMatchObject({ check: "shredstream-firewall", level });
    expect(finding?.finding).toContain(words);
    if (level !== "warn") return;
    expect(finding?.remedy).toContain("nft insert rule inet filter input udp dport 20000 accept");
    expect(finding?.measure).toBe(measures["shredstream-firewall"]);
  });

  it("reads no rules without such a source", () => {
    const { relay } = parseConfig("relay: { shredVersion: 1, authentication: off }", "/a.yaml");
    const run = () => {
      throw new Error("expected no command");
    };
    expect(readInboundFacts(relay, { run })).toEqual([]);
  });
});
