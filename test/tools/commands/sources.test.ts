// `shredway sources` as users and programs call it, on real files, compared with the relay.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import {
  chmodSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseAddress, parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { Relay } from "../../../src/relay/data-plane/relay.ts";
import { sourceOf } from "../../../src/tools/commands/sources.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { shredwayHere } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const text = `# ours
relay:
  authentication: off
  shredVersion: 50093
  sources:
    - { name: fra-a, address: 10.0.0.0/24, tier: tier-1 }
`;

function configFile(): { readonly folder: string; readonly file: string } {
  const folder = temporaryFolder();
  const file = join(folder, "shredway.yaml");
  writeFileSync(file, text);
  chmodSync(file, 0o640);
  return { folder, file };
}

function addEdge(...words: readonly string[]): readonly string[] {
  return ["sources", "add", "edge", "--tier", "tier-1", ...words, "--config", "FILE"];
}

describe("shredway sources", () => {
  it("adds, lists, finds and removes, and leaves the file unchanged at the end", async () => {
    const { folder, file } = configFile();
    const added = await shredwayHere(
      "sources",
      "add",
      "nyc-a",
      "--tier",
      "tier-2",
      "--address",
      "10.1.0.0/16",
      "--config",
      file,
    );
    expect(added).toMatchObject({ code: 0, stderr: "" });
    expect(added.stdout).toContain("now has 2 sources; reload the service (SIGHUP) to apply them");
    expect(readFileSync(file, "utf8")).toMatch(/^# ours\n/);
    expect(statSync(file).mode & 0o777).toBe(0o640);

    const listed = await shredwayHere("sources", "list", "--config", file);
    expect(listed.stdout).toMatch(
      /NAME +TIER +USE +PACKETS FROM\nfra-a +tier-1 +forwarded +10.0.0.0\/24\nnyc-a +tier-2 +forwarded +10.1.0.0\/16\n/,
    );

    const found = await shredwayHere("sources", "find", "10.1.2.3", "--config", file, "--json");
    expect(JSON.parse(found.stdout)).toMatchObject({ source: { name: "nyc-a" } });
    const stranger = await shredwayHere("sources", "find", "10.2.0.1", "--config", file);
    expect(stranger).toMatchObject({ code: 1 });
    expect(stranger.stdout).toContain("no source matches 10.2.0.1: its packets are dropped");

    const removed = await shredwayHere("sources", "remove", "nyc-a", "--config", file, "--json");
    expect(JSON.parse(removed.stdout)).toMatchObject({ sources: [{ name: "fra-a" }] });
    expect(readFileSync(file, "utf8")).toBe(text);
    expect(readdirSync(folder)).toEqual(["shredway.yaml"]);
  });

  it("adds a source for own use, and shows it", async () => {
    const { file } = configFile();
    const line = "sources add own --tier tier-1 --port 20000 --own-use --config".split(" ");
    const added = await shredwayHere(...line, file);
    expect(added).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(file, "utf8")).toContain(
      "- { name: own, port: 20000, tier: tier-1, forward: false }",
    );
    const listed = await shredwayHere("sources", "list", "--config", file);
    expect(listed.stdout).toMatch(/own +tier-1 +own use +any address to port 20000\n/);
    const find = "sources find 192.0.2.1 --port 20000 --config".split(" ");
    const found = await shredwayHere(...find, file);
    expect(found.stdout).toContain("192.0.2.1 is own, tier-1, own use (any address to port 20000)");
  });

  it("finds sources by the ports of relay.listen, unless --port is given", async () => {
    const { file } = configFile();
    const listen = (ports: string) =>
      writeFileSync(
        file,
        text
          .replace("relay:", `relay:\n  listen: ${ports}`)
          .replace("address: 10.0.0.0/24", "port: 20001"),
      );
    const find = ["sources", "find", "192.0.2.1", "--config", file];
    listen('"0.0.0.0:20001"');
    const one = await shredwayHere(...find);
    expect(one).toMatchObject({ code: 0, stderr: "" });
    expect(one.stdout).toBe("192.0.2.1 is fra-a, tier-1, forwarded (any address to port 20001)\n");

    listen('["0.0.0.0:20000", "0.0.0.0:20001"]');
    const two = await shredwayHere(...find);
    expect(two).toMatchObject({ code: 0, stderr: "" });
    expect(two.stdout).toBe(
      "port 20000: no source matches 192.0.2.1: its packets are dropped\n" +
        "port 20001: 192.0.2.1 is fra-a, tier-1, forwarded (any address to port 20001)\n",
    );
    const json = await shredwayHere(...find, "--json");
    expect(JSON.parse(json.stdout)).toMatchObject({
      source: null,
      ports: [
        { port: 20_000, source: null },
        { port: 20_001, source: { name: "fra-a" } },
      ],
    });
    expect(await shredwayHere(...find, "--port", "20000")).toMatchObject({ code: 1 });
  });

  it("adds a multicast source, which is for own use", async () => {
    const { file } = configFile();
    const line = "sources add edge --tier tier-1 --kind multicast --group 233.84.178.1 --config";
    expect(await shredwayHere(...line.split(" "), file)).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(file, "utf8")).toContain(
      "- { name: edge, kind: multicast, groups: [ 233.84.178.1 ], tier: tier-1 }",
    );
    const listed = await shredwayHere("sources", "list", "--config", file);
    expect(listed.stdout).toMatch(
      /edge +tier-1 +own use +233.84.178.1 on doublezero1 to port 7733\n/,
    );
  });

  it("writes --own-use of a multicast source, although it is the default", async () => {
    const { file } = configFile();
    const words = addEdge("--kind", "multicast", "--interface", "eth1", "--own-use");
    const ended = await shredwayHere(...words.map((word) => (word === "FILE" ? file : word)));
    expect(ended).toMatchObject({ code: 0, stderr: "" });
    expect(readFileSync(file, "utf8")).toContain(
      "- { name: edge, kind: multicast, interface: eth1, tier: tier-1, forward: false }",
    );
  });

  it("follows a symbolic link to the file", async () => {
    const { folder, file } = configFile();
    const link = join(folder, "link.yaml");
    symlinkSync(file, link);
    const { code } = await shredwayHere("sources", "remove", "fra-a", "--config", link);
    expect(code).toBe(0);
    expect(readFileSync(file, "utf8")).not.toContain("fra-a");
    expect(readFileSync(link, "utf8")).toBe(readFileSync(file, "utf8"));
  });

  it.each([
    [["sources"], 2, "missing action; expected one of list, find, add, remove"],
    [["sources", "add", "x", "--tier", "tier-1"], 2, "missing option --config"],
    [
      ["sources", "add", "x", "--tier", "tier-1", "--config", "FILE"],
      2,
      "--address and --port are missing",
    ],
    [
      ["sources", "add", "x", "--tier", "t", "--address", "10.0.0.1", "--config", "FILE"],
      1,
      "relay.tiers",
    ],
    [
      ["sources", "find", "nowhere", "--config", "FILE"],
      2,
      'sources: find: invalid value "nowhere"; expected',
    ],
    [["sources", "list", "--tier", "t", "--config", "FILE"], 2, "it is an option of sources add"],
    [["sources", "remove", "x", "--config", "FILE"], 1, "expected one of fra-a"],
    [
      addEdge("--port", "20000", "--group", "233.84.178.1"),
      2,
      "unexpected option --group with kind udp; expected it only with kind multicast; remove --group, or give --kind multicast",
    ],
    [
      addEdge("--kind", "udp", "--address", "10.0.0.1", "--interface", "eth1"),
      2,
      "unexpected option --interface with kind udp; expected it only with kind multicast",
    ],
    [
      addEdge("--kind", "multicast", "--address", "10.0.0.1"),
      2,
      "unexpected option --address with kind multicast; expected it only with kind udp",
    ],
    [
      addEdge("--kind", "shredstream", "--port", "20000"),
      2,
      '--kind: invalid value "shredstream"; expected one of udp, multicast; write a source of kind shredstream into the file itself',
    ],
    [
      addEdge("--kind", "multicas", "--address", "10.0.0.1"),
      2,
      '--kind: invalid value "multicas"; expected one of udp, multicast',
    ],
  ] as const)("refuses %j", async (words, code, message) => {
    const { file } = configFile();
    const ended = await shredwayHere(...words.map((word) => (word === "FILE" ? file : word)));
    expect(ended.stderr).toContain(message);
    expect(ended.code).toBe(code);
    expect(readFileSync(file, "utf8")).toBe(text);
  });
});

describe("sourceOf", () => {
  it("selects the same source as the relay", async () => {
    const relay = Relay.open({
      listen: ["127.0.0.1:0", "127.0.0.1:0"],
      workers: 1,
      tiers: ["t"],
      authentication: "off",
      shredVersion: 1,
      prefault: false,
      receiveFilter: false,
    });
    try {
      const [first = "", second = ""] = relay.addresses;
      const port = parseEndpoint(second).port;
      const list = [
        { name: "range", address: "127.0.0.0/8", tier: "t" },
        { name: "narrow", address: "127.0.3.0/24", tier: "t" },
        { name: "narrow-port", address: "127.0.3.0/24", port, tier: "t" },
        { name: "one", address: "127.0.3.9", tier: "t" },
        { name: "port", port, tier: "t" },
      ];
      relay.publishSources(list);
      for (const [address, to] of [
        ["127.0.9.1", first],
        ["127.0.9.1", second],
        ["127.0.3.1", first],
        ["127.0.3.1", second],
        ["127.0.3.9", second],
      ] as const) {
        const { port: ownPort } = parseEndpoint(to);
        const expected = sourceOf(list, parseAddress(address), ownPort)?.name;
        const before = relay.snapshot();
        const socket = createSocket("udp4").bind(0, address);
        await once(socket, "listening");
        socket.send(Buffer.alloc(40), ownPort, "127.0.0.1");
        await until(() => relay.snapshot().received > before.received, "the packet");
        socket.close();
        const counted = relay
          .snapshot()
          .sources.filter(({ received }, i) => received > (before.sources[i]?.received ?? 0n));
        expect(counted.map(({ name }) => name)).toEqual([expected]);
      }
    } finally {
      relay.close();
    }
  });
});
