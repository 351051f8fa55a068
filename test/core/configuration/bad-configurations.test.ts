import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { least, messageOf, path } from "./config-texts.ts";

describe("bad configurations", () => {
  const withRelay = (lines: string) => messageOf(`${least}${lines.replaceAll(/^/gm, "  ")}\n`);

  it("rejects a keep-alive time that the engine cannot use", () => {
    const message = (http: string) =>
      messageOf(`${least}http: { ${http} }\ntips: { addresses: ["${"1".repeat(32)}"] }\n`);
    expect(message("engine: uws, keepAliveSeconds: 90")).toMatch(
      /http.keepAliveSeconds: 90 is not possible with engine: uws; expected 10, or engine: node$/,
    );
    expect(message("engine: uws, keepAliveSeconds: 10")).toBe("accepted");
    expect(message("engine: node, keepAliveSeconds: 3600")).toBe("accepted");
  });

  it("rejects QUIC addresses that are missing or in use", () => {
    const message = (quic: string, http = "http: {}") =>
      messageOf(`${least}${http}\ntips: { addresses: ["${"1".repeat(32)}"] }\nquic: ${quic}\n`);
    expect(message("{}")).toBe("accepted");
    expect(message("{ listen: 127.0.0.1:0, protectedListen: [] }")).toBe("accepted");
    expect(message("{}", "")).toMatch(
      /quic: requires http, because the keys and limits of both are the same/,
    );
    expect(message("{ listen: [], protectedListen: [] }")).toMatch(
      /quic: no address; expected at least one in listen, protectedListen or swqosOnlyListen/,
    );
    expect(message("{ listen: 10.0.0.1:9000, protectedListen: 10.0.0.1:9000 }")).toMatch(
      /quic.protectedListen\[0\]: duplicate address 10.0.0.1:9000 \(also quic.listen\[0\]\); expected different addresses/,
    );
    expect(message("{ swqosOnlyListen: 0.0.0.0:20000 }")).toMatch(
      /quic.swqosOnlyListen\[0\]: duplicate address 0.0.0.0:20000 \(also relay.listen\[0\]\)/,
    );
    expect(message("{ listen: 127.0.0.1:20000 }")).toMatch(
      /quic.listen\[0\]: duplicate address 127.0.0.1:20000 \(also relay.listen\[0\] 0.0.0.0:20000\)/,
    );
    expect(message("{ listen: '[::1]:20000' }")).toBe("accepted");
    expect(message("{ streamTimeoutMs: 5 }")).toMatch(/expected an integer 10 to 60000/);
  });

  it.each([
    ["nothing", "", /^[^:]+: the file is empty; expected at least the section relay$/],
    [
      "only comments",
      "# relay:\n",
      /^[^:]+: the file is empty; expected at least the section relay$/,
    ],
    [
      "no mapping",
      "relay",
      /^[^:]+:1: invalid value "relay"; expected a mapping with the section relay and, optional, [^\n]*$/,
    ],
    [
      "a list",
      "- relay",
      /^[^:]+:1: invalid value \["relay"\]; expected a mapping with the section relay and, optional, [^\n]*$/,
    ],
    ["broken YAML", "relay: [1", /shredway.yaml:1: invalid YAML/],
    [
      "a key twice",
      "relay: {}\nrelay: {}",
      /shredway.yaml:2: invalid YAML: Map keys must be unique/,
    ],
    ["two documents", "a: 1\n---\nb: 2", /yaml:2: .*: expected one document, got another one/],
    ["an unknown tag", "relay: !secret x", /invalid YAML: Unresolved tag/],
    [
      "no shred version",
      "relay: {}",
      /relay.shredVersion: missing required key; expected an integer 1 to 65535/,
    ],
    [
      "a gateway without tip addresses",
      `${least}http: {}\n`,
      /tips.addresses: no tip address; expected at least one, because http is configured/,
    ],
    [
      "a public key that is too short",
      `${least}shredstream: { subscribers: [{ name: a, publicKey: abc, tier: tier-1 }] }\n`,
      /shredstream.subscribers\[0\].publicKey: /,
    ],
    [
      "a listener with an unknown endpoint group",
      `${least}http: { split: [{ listen: "127.0.0.1:8781", serves: [metrics] }] }\n`,
      /http.split\[0\].serves\[0\]: invalid value "metrics"; expected a list of 1 to 4 of gateway, tips, tracker and portal/,
    ],
    [
      "an operator address that is not an address",
      `${least}operations: { allow: [everyone] }\n`,
      /operations.allow\[0\]: invalid value .*; expected an IP address or a range/,
    ],
    [
      "an unknown region",
      `${least}region: here\n`,
      /:4: region: unknown region "here"; expected a name of regions \(none is configured\)/,
    ],
    [
      "a route without a URL",
      `${least}routes: [{ name: a, kind: swqos }]\n`,
      /:4: routes\[0\]: missing address; expected url/,
    ],
    [
      "leaders of another kind",
      `${least}routes: [{ name: a, kind: swqos, leaders: {} }]\n`,
      /routes\[0\].leaders: requires kind: alt-partner; the kind is swqos/,
    ],
    [
      "a TPU route with an HTTP URL",
      `${least}routes: [{ name: a, kind: tpu, url: "http://x", quicAddresses: {} }]\n`,
      /routes\[0\].url: requires a route over HTTP; this route uses QUIC/,
    ],
    [
      "nonce accounts without a node",
      `${least}nonces: { fundingKeyFile: a.json }\n`,
      /nonces.fundingKeyFile: requires solana.rpc/,
    ],
    [
      "authorities without a funding key",
      `${least}solana: { rpc: "http://x" }\nnonces: { authorityKeyFile: a.json }\n`,
      /nonces.authorityKeyFile: requires fundingKeyFile/,
    ],
    [
      "a TPU route without addresses",
      `${least}routes: [{ name: a, kind: tpu }]\n`,
      /routes\[0\]: missing leader addresses; expected solana.rpc or quicAddresses/,
    ],
    [
      "ports for QUIC of another kind",
      `${least}routes: [{ name: a, kind: tpu, quicAddresses: {}, quicPorts: { plain: 1, protected: 2 } }]\n`,
      /routes\[0\].quicPorts: requires kind: alt-partner; the kind is tpu/,
    ],
    [
      "two ways to an alternative partner",
      `${least}routes: [{ name: a, kind: alt-partner, leaders: {}, quicAddresses: {}, quicPorts: { plain: 1, protected: 2 } }]\n`,
      /routes\[0\].leaders: requires a route over HTTP; this route uses QUIC/,
    ],
    [
      "an unused identity",
      `${least}routes: [{ name: a, kind: swqos, url: "http://x", identityFile: k }]\n`,
      /routes\[0\].identityFile: requires a route over QUIC; this route uses HTTP/,
    ],
    [
      "unsupported headers",
      `${least}routes: [{ name: a, kind: tpu, quicAddresses: {}, headers: { k: v } }]\n`,
      /routes\[0\].headers: requires a route over HTTP; this route uses QUIC/,
    ],
    [
      "a route's header that frames the request",
      `${least}routes: [{ name: a, kind: swqos, url: "http://x", headers: { Connection: close } }]\n`,
      /routes\[0\].headers: expected headers that do not frame the request, got Connection/,
    ],
    [
      "a route that accepts nothing",
      `${least}routes: [{ name: a, kind: swqos, url: "http://x", transactions: false }]\n`,
      /the route accepts nothing; expected transactions: true, or kind: block-builder with bundles: true/,
    ],
    [
      "two routes of one name",
      `${least}routes: [{ name: a, kind: swqos, url: "http://x" }, { name: a, kind: swqos, url: "http://y" }]\n`,
      /routes\[1\].name: duplicate name "a" \(also routes\[0\]\); expected different names/,
    ],
    [
      "an empty section",
      "relay:",
      /shredway.yaml:1: relay: invalid value null; expected a mapping/,
    ],
  ])("rejects %s", (_what, text, message) => {
    expect(messageOf(text)).toMatch(message);
  });

  it.each([
    [
      "an unknown key",
      "lisen: x",
      /:4: relay.lisen: unknown key "lisen"; did you mean listen\?\n.*relay.lisen\[0\]: invalid value "x"/,
    ],
    [
      "a listener without port",
      "listen: 0.0.0.0",
      /:4: relay.listen\[0\]: invalid value "0.0.0.0"; expected an address and port /,
    ],
    [
      "a listener that is a number",
      "listen: 20000",
      /:4: relay.listen: invalid value 20000; expected an address and port/,
    ],
    ["no listener", "listen: []", /relay.listen: invalid value \[\]; expected .* list of 1 to 16/],
    [
      "a listener twice",
      'listen: ["0.0.0.0:1", "0.0.0.0:1"]',
      /relay.listen\[1\]: duplicate address 0.0.0.0:1/,
    ],
    [
      "port 0 with workers",
      'listen: "0.0.0.0:0"\nworkers: 2',
      /relay.listen\[0\]: port 0 is not allowed with 2 workers/,
    ],
    [
      "too many workers",
      "workers: 65",
      /:4: relay.workers: invalid value 65; expected an integer 1 to 64/,
    ],
    [
      "half a worker",
      "workers: 1.5",
      /relay.workers: invalid value 1.5; expected an integer 1 to 64/,
    ],
    [
      "an unknown transmit mode",
      "transmit: pigeon",
      /relay.transmit: invalid value "pigeon"; expected socket, clone, auto or xdp/,
    ],
    [
      "a hop limit of 0",
      "send: { ttl: 0 }",
      /relay.send.ttl: invalid value 0; expected an integer 1 to 255/,
    ],
    [
      "a dscp out of range",
      "send: { dscp: 64 }",
      /relay.send.dscp: invalid value 64; expected an integer 0 to 63/,
    ],
    ["tiers twice", "tiers: [a, a]", /relay.tiers\[1\]: duplicate tier "a"/],
    ["a bad tier name", 'tiers: ["a b"]', /relay.tiers\[0\]: invalid value "a b"; expected /],
    [
      "an unknown authentication",
      "authentication: none",
      /invalid value "none"; expected leader-schedule or off/,
    ],
    [
      "too few cpus",
      "workers: 2\ncpus: [1]",
      /relay.cpus: 1 for 2 workers; expected one CPU per worker/,
    ],
    [
      "a word for cpus",
      "cpus: all",
      /relay.cpus: invalid value "all"; expected a list of .*, or none/,
    ],
    ["a cpu twice", "workers: 2\ncpus: [1, 1]", /relay.cpus\[1\]: duplicate CPU 1/],
    [
      "a small buffer",
      "receive: { bufferBytes: 1000 }",
      /relay.receive.bufferBytes: invalid value 1000; expected an integer 65536 to/,
    ],
    [
      "a source's unknown key",
      "sources: [{ name: a, tier: tier-1, adress: 10.0.0.1 }]",
      /relay.sources\[0\].adress: unknown key "adress"; did you mean address\?/,
    ],
    [
      "a source without address and port",
      "sources: [{ name: a, tier: tier-1 }]",
      /relay.sources\[0\]: missing address and port; expected at least one of them/,
    ],
    [
      "a source's unknown tier",
      "sources: [{ name: a, tier: x, address: 10.0.0.1 }]",
      /relay.sources\[0\].tier: unknown tier "x"; expected a tier of relay.tiers: tier-1, tier-2/,
    ],
    [
      "groups of a source that is not multicast",
      "sources: [{ name: a, tier: tier-1, address: 10.0.0.1, groups: [233.84.178.1], interface: eth0 }]",
      /sources\[0\].groups: only a source with kind: multicast has this key\n.*sources\[0\].interface: only/,
    ],
    [
      "an address of a multicast source",
      "sources: [{ name: a, tier: tier-1, kind: multicast, address: 10.0.0.1 }]",
      /sources\[0\].address: the groups identify a source with kind: multicast, not the senders; remove this key/,
    ],
    [
      "a multicast source on a port of the relay",
      "sources: [{ name: a, tier: tier-1, kind: multicast, port: 20000 }]",
      /sources\[0\].port: port 20000 is also a port of relay.listen; expected a port of its own for multicast groups/,
    ],
    [
      "a group of two sources",
      "sources:\n  - { name: a, tier: tier-1, kind: multicast, groups: [233.84.178.1] }\n  - { name: b, tier: tier-1, kind: multicast, groups: [233.84.178.1] }",
      /sources\[1\].groups: group 233.84.178.1 on port 7733 also belongs to sources\[0\]; expected different groups/,
    ],
    [
      "all groups of an interface for two sources",
      "sources:\n  - { name: a, tier: tier-1, kind: multicast }\n  - { name: b, tier: tier-1, kind: multicast }",
      /sources\[1\]: the groups of doublezero1 on port 7733 also belong to sources\[0\]; expected different groups/,
    ],
    [
      "a group that is not a multicast address",
      "sources: [{ name: a, tier: tier-1, kind: multicast, groups: [192.0.2.1] }]",
      /sources\[0\].groups\[0\]: invalid value "192.0.2.1"; .*192.0.2.1 is not a multicast address|192.0.2.1 is not a multicast address; expected a group such as 233.84.178.1/,
    ],
    [
      "an unknown kind of source",
      "sources: [{ name: a, tier: tier-1, kind: multicas }]",
      /sources\[0\].kind: .*multicas.*expected one of udp, shredstream, multicast/,
    ],
    [
      "a source's use",
      "sources: [{ name: a, tier: tier-1, address: 10.0.0.1, forward: own }]",
      /relay.sources\[0\].forward: invalid value "own"; expected true or false/,
    ],
    [
      "a source's port without a listener",
      "sources: [{ name: a, tier: tier-1, port: 5 }]",
      /relay.sources\[0\].port: unknown port 5; expected a port of relay.listen: 20000/,
    ],
    [
      "a source name twice",
      "sources:\n  - { name: a, tier: tier-1, address: 10.0.0.1 }\n  - { name: a, tier: tier-1, address: 10.0.0.2 }",
      /:6: relay.sources\[1\].name: duplicate name "a"/,
    ],
    [
      "a source range twice",
      'sources:\n  - { name: a, tier: tier-1, address: 10.0.0.1 }\n  - { name: b, tier: tier-1, address: "::ffff:a00:1" }',
      /:6: relay.sources\[1\]: same address and port as sources\[0\]/,
    ],
    [
      "an unknown tier of discovered destinations",
      "discovery: { url: http://e, tier: x }",
      /relay.discovery.tier: unknown tier "x"; expected a tier of relay.tiers: tier-1, tier-2/,
    ],
    [
      "a discovery of another scheme",
      "discovery: { url: ftp://e, tier: tier-1 }",
      /relay.discovery.url: URL of ftp; expected a URL of http or https/,
    ],
    [
      "a discovery that asks too often",
      "discovery: { url: http://e, tier: tier-1, intervalSeconds: 1 }",
      /relay.discovery.intervalSeconds: invalid value 1; expected an integer 5 to 3600/,
    ],
    [
      "a block engine without its mapping",
      "sources: [{ name: a, tier: tier-1, kind: shredstream }]",
      /relay.sources\[0\]: missing shredstream; expected a mapping with url, keyFile and regions/,
    ],
    [
      "a block engine of another kind of source",
      "sources: [{ name: a, tier: tier-1, address: 10.0.0.1, shredstream: { url: http://e, keyFile: k, regions: [ny] } }]",
      /relay.sources\[0\].shredstream: unexpected with kind: udp; expected kind: shredstream/,
    ],
    [
      "three regions",
      "sources: [{ name: a, tier: tier-1, kind: shredstream, shredstream: { url: http://e, keyFile: k, regions: [ny, slc, tokyo] } }]",
      /relay.sources\[0\].shredstream.regions: .*expected a list of 1 to 2 names of the block engine's regions/,
    ],
    [
      "a block engine with a path",
      "sources: [{ name: a, tier: tier-1, kind: shredstream, shredstream: { url: http://e/x, keyFile: k, regions: [ny] } }]",
      /relay.sources\[0\].shredstream.url: expected http:..HOST.*; got a path or a query/,
    ],
    [
      "a sender address of a block engine",
      "sources: [{ name: a, tier: tier-1, kind: shredstream, address: 10.0.0.1, shredstream: { url: http://e, keyFile: k, regions: [ny] } }]",
      /relay.sources\[0\].address: unexpected address 10.0.0.1 with kind: shredstream; expected none, because/,
    ],
    [
      "a block engine without authentication",
      "authentication: off\nsources: [{ name: a, tier: tier-1, kind: shredstream, shredstream: { url: http://e, keyFile: k, regions: [ny] } }]",
      /relay.sources\[0\].kind: shredstream is not possible with relay.authentication: off/,
    ],
    [
      "a block engine that would send to one of two ports",
      'listen: ["0.0.0.0:20000", "0.0.0.0:20001"]\nsources: [{ name: a, tier: tier-1, kind: shredstream, shredstream: { url: http://e, keyFile: k, regions: [ny] } }]',
      /relay.sources\[0\]: missing port; expected one of relay.listen: 20000, 20001/,
    ],
    [
      "two block engines at one port",
      "sources:\n  - { name: a, tier: tier-1, kind: shredstream, shredstream: { url: http://e, keyFile: k, regions: [ny] } }\n  - { name: b, tier: tier-1, kind: shredstream, shredstream: { url: http://f, keyFile: k, regions: [ny] } }",
      /relay.sources\[1\]: same address and port as sources\[0\]/,
    ],
    [
      "a block engine at the port of another source, written once",
      'listen: ["0.0.0.0:20001", "[::]:20001"]\nsources:\n  - { name: a, tier: tier-1, port: 20001 }\n  - { name: b, tier: tier-1, kind: shredstream, shredstream: { url: http://f, keyFile: k, regions: [ny] } }',
      /relay.sources\[1\]: same address and port as sources\[0\]/,
    ],
    [
      "a public address of another family",
      'sources: [{ name: a, tier: tier-1, kind: shredstream, shredstream: { url: http://e, keyFile: k, regions: [ny], publicAddress: "2001:db8::1" } }]',
      /relay.sources\[0\].shredstream.publicAddress: 2001:db8::1 has another address family/,
    ],
    [
      "a host name",
      "sources: [{ name: a, tier: tier-1, address: example.org }]",
      /relay.sources\[0\].address: invalid value "example.org"; expected an IP address or a range/,
    ],
    [
      "a private destination",
      'destinations: [{ tier: tier-1, address: "10.0.0.1:9" }]',
      /relay.destinations\[0\].address: .*class private; expected a public address .*allowPrivateDestinations/,
    ],
    [
      "an unspecified destination",
      'allowPrivateDestinations: true\ndestinations: [{ tier: tier-1, address: "0.0.0.0:9" }]',
      /class unspecified/,
    ],
    [
      "a destination twice",
      'destinations: [{ tier: tier-1, address: "192.0.2.1:9" }, { tier: tier-2, address: "[::ffff:192.0.2.1]:9" }]',
      /relay.destinations\[1\].address: duplicate address /,
    ],
    [
      "a destination name twice",
      'destinations: [{ name: a, tier: tier-1, address: "192.0.2.1:9" }, { name: a, tier: tier-2, address: "192.0.2.1:8" }]',
      /relay.destinations\[1\].name: duplicate name "a"/,
    ],
    [
      "the relay as its own destination",
      'allowPrivateDestinations: true\nlisten: "127.0.0.1:9"\ndestinations: [{ tier: tier-1, address: "127.0.0.1:9" }]',
      /is an address of relay.listen /,
    ],
    [
      "recovered shreds without deshredding",
      'deshred: false\ndestinations: [{ tier: tier-1, address: "192.0.2.1:9", recovered: true }]',
      /destinations\[0\].recovered: requires relay.deshred: true/,
    ],
    [
      "a destination port 0",
      'destinations: [{ tier: tier-1, address: "192.0.2.1:0" }]',
      /invalid value "192.0.2.1:0"; .* port 1 to 65535/,
    ],
  ])("rejects %s", (_what, lines, message) => {
    expect(withRelay(lines)).toMatch(message);
  });

  it("requires a leader schedule unless authentication is off", () => {
    expect(messageOf("relay: { shredVersion: 1 }")).toMatch(
      /relay.leaders: missing leader schedule; expected leaders.file/,
    );
    expect(messageOf("relay: { shredVersion: 1, authentication: off }")).toBe("accepted");
  });

  it("reports all problems in line order, and limits their number", () => {
    const lines = withRelay("workers: 0\ncolour: x\ncpus: []").split("\n");
    expect(lines.map((line) => line.split(" ")[0])).toEqual(
      [4, 5, 6].map((line) => `${path}:${line}:`),
    );
    const sources = Array.from({ length: 50 }, () => "- { name: a }").join("\n");
    expect(withRelay(`sources:\n${sources}`).split("\n").length).toBe(21);
  });

  it.each([
    ["nested lists", "[".repeat(100_000)],
    ["nested mappings", "{a: ".repeat(100_000)],
    ["nested marks", "- ".repeat(100_000)],
    ["nested lines", Array.from({ length: 1500 }, (_, i) => `${" ".repeat(i)}a:`).join("\n")],
  ])("rejects %s before the recursive part of the YAML parser runs", (_what, text) => {
    expect(messageOf(text)).toMatch(/expected at most 64 levels of nesting, got more/);
  });

  it.each([
    [
      "multiplied aliases",
      `a0: &a0 [x]\n${Array.from({ length: 30 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}, *a${i}]`).join("\n")}`,
    ],
    ["an alias to itself", "relay: &a [*a]"],
    ["a prototype", "__proto__: { relay: {} }\nconstructor: 1"],
  ])("survives %s", (_what, text) => {
    expect(messageOf(text)).not.toBe("accepted");
  });

  it("returns a configuration or an error for any text", () => {
    const pieces = fc.constantFrom(
      "relay",
      ":",
      " ",
      "\n",
      "  ",
      "-",
      "[",
      "]",
      "{",
      "}",
      ",",
      "sources",
      "x",
      "1",
      '"',
      "&a",
      "*a",
      "!",
      "|",
      "#",
      "listen",
      "null",
    );
    const texts = fc.oneof(
      fc.string(),
      fc.array(pieces, { maxLength: 40 }).map((parts) => parts.join("")),
      fc.array(pieces, { maxLength: 20 }).map((parts) => `${least}  listen: ${parts.join("")}`),
    );
    fc.assert(
      fc.property(texts, (text) => {
        expect(messageOf(text).length).toBeGreaterThan(0);
      }),
      { numRuns: 2000 },
    );
  });
});
