// Runs every example by the command in its header, and the programs of docs/, against one sandbox
// that was started like a user's.

import { spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { readdirSync, readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ShredwayClient } from "../../src/client/index.ts";
import { loadQuiche } from "../../src/core/quic/quiche.ts";
import { freePortPair, freeUdpPort } from "../support/network/free-ports.ts";
import { until } from "../support/network/udp-receiver.ts";
import { Shredway } from "../support/processes/shredway.ts";
import { goodCodeFields, goodDataFields, makePacket } from "../support/shreds/shreds.ts";
import { InstalledPackage, Program } from "./installed-package.ts";

const signature = "[1-9A-HJ-NP-Za-km-z]{87,88}";
const hasCurl = spawnSync("curl", ["--version"]).status === 0;

let installed: InstalledPackage;
let sandbox: Shredway;
let gateway = "";
let chain = "";
let quic = "";
let streams = "";

beforeAll(async () => {
  installed = await InstalledPackage.open();
  const http = `127.0.0.1:${await freePortPair()}`;
  const addresses = [
    "--http",
    http,
    "--udp",
    "127.0.0.1:0",
    "--streams",
    "127.0.0.1:0",
    "--quic",
    "127.0.0.1:0",
    "--rpc",
    "127.0.0.1:0",
  ];
  sandbox = Shredway.run("start", ...addresses, "--data", `${installed.folder}/data`);
  const ready =
    /^ready .*? authentication=\S+(?: quic=([^,\s]+)\S*)? streams=(\S+).* rpc=(\S+) gateway=(\S+)$/m;
  const [, address = "", decoded = "", rpc = "", url = ""] = await sandbox.printed(ready);
  [quic, streams, chain, gateway] = [address, decoded, rpc, url];
});

afterAll(async () => {
  await sandbox.kill();
  installed.close();
});

describe.concurrent("stock clients", () => {
  it("web3.js sends and confirms", async () => {
    expect(await installed.run("examples/web3.js/send.mjs", gateway, chain)).toMatch(
      new RegExp(`^${signature} is confirmed in slot \\d+\n$`),
    );
  });

  it("web3.js sends a bundle that lands together", async () => {
    const printed = await installed.run("examples/web3.js/bundle.mjs", gateway, chain);
    const lines = new RegExp(
      `^${signature} landed in slot (\\d+)\n${signature} landed in slot (\\d+)\n$`,
    );
    const [, first, second] = lines.exec(printed) ?? [printed];
    expect([first, second]).toEqual([expect.stringMatching(/^\d+$/), first]);
  });

  it("web3.js sends a pair, and exactly one lands", async () => {
    const printed = await installed.run("examples/web3.js/ideal.mjs", gateway, chain);
    const lines = printed
      .trimEnd()
      .split("\n")
      .map((line) => line.split(" ")[1]);
    expect(new Set(lines)).toEqual(new Set(["landed", "superseded"]));
  });

  it("kit sends and confirms", async () => {
    expect(await installed.run("examples/kit/send.mjs", gateway, chain)).toMatch(
      new RegExp(`^${signature} is confirmed in slot \\d+\n$`),
    );
  });

  it("jito-js-rpc sends a bundle and follows it", async () => {
    expect(await installed.run("examples/jito-js-rpc/bundle.mjs", gateway, chain)).toMatch(
      new RegExp(`^bundle [0-9a-f]{64}\nfinalized in slot \\d+: ${signature} ${signature}\n$`),
    );
  });
});

describe.concurrent("curl", () => {
  it.skipIf(!hasCurl)("asks for health over one connection", async () => {
    const printed = await installed.run("examples/curl/health.sh", gateway);
    expect(printed).toBe(
      'ok\n{"jsonrpc":"2.0","result":"ok","id":1}\nnew connections: 1\nnew connections: 0\n',
    );
  });

  it.skipIf(!hasCurl)("returns recent landed tips", async () => {
    const printed = await installed.run("examples/curl/tip-floor.sh", gateway);
    const [lamports, sol] = printed
      .trimEnd()
      .split("\n")
      .map((line): unknown => JSON.parse(line));
    expect(lamports).toMatchObject([
      { landed_tips_50th_percentile: expect.any(Number), stale: expect.any(Boolean) },
    ]);
    expect(sol).toMatchObject([{ ema_landed_tips_50th_percentile: expect.any(Number) }]);
  });

  it.skipIf(!hasCurl)("sends a transaction and waits for its final status", async () => {
    const printed = await installed.run("examples/curl/send.sh", gateway, chain);
    expect(printed).toMatch(
      new RegExp(`^sent (${signature})\nlanded\n.*"signature":"\\1","state":"landed"`),
    );
  });

  it.skipIf(!hasCurl)("registers a tip, which counts", async () => {
    const printed = await installed.run("examples/curl/register.sh", gateway, chain);
    const [receipt = "", tier = ""] = printed.trimEnd().split("\n");
    expect(receipt).toMatch(new RegExp(`^{"accepted":\\["${signature}"\\],"rejected":\\[\\]}$`));
    expect(tier).toMatch(/"tier":"tier-[12]"/);
  });
});

describe.concurrent("the typed client", () => {
  it("shows a timeline as it happens", async () => {
    const printed = await installed.run("examples/client/status.mjs", gateway, chain);
    const lines = printed.trimEnd().split("\n");
    expect(lines[0]).toMatch(new RegExp(`^sent ${signature}$`));
    const kinds = lines.slice(1, -1).map((line) => line.split(" ")[1]);
    expect(kinds[0]).toBe("received");
    expect(kinds).toContain("sent");
    expect(kinds.at(-1)).toBe("landed");
    expect(lines.at(-1)).toMatch(/^landed in slot \d+$/);
  });

  it.skipIf(!loadQuiche())("sends over QUIC", async () => {
    const printed = await installed.run("examples/client/quic.mjs", gateway, chain, quic);
    expect(printed).toMatch(new RegExp(`^sent ${signature}\nlanded in slot \\d+\n$`));
  });

  it("shows tips of the stream", async () => {
    expect(await installed.run("examples/client/tips.mjs", gateway, "1")).toMatch(
      /^\S+Z p25 \d+ p50 \d+ p75 \d+ p95 \d+ p99 \d+ of \d+/,
    );
  });

  it("adds a destination and verifies it by a call", async () => {
    const address = `127.0.0.1:${await freeUdpPort()}`;
    const printed = await installed.run(
      "examples/client/destination.mjs",
      gateway,
      address,
      "frankfurt",
    );
    const [, id = ""] = /^(d_[0-9a-f]{12}) unproved$/m.exec(printed) ?? [];
    expect(printed).toContain(`${id} ${address} active verified by call, until 20`);
    const push = installed.write("docs/transaction-push.md", "push.mjs");
    const receiver = installed.start(push, gateway, id, address.replace(/.*:/, ""));
    try {
      await until(() => /^\d+n \d+ \d+$/m.test(receiver.stdout), "pushed transactions");
    } finally {
      await receiver.close();
    }
    await new ShredwayClient({ url: gateway }).removeDestination(id);
  });

  it("reports a refused destination in one line", async () => {
    const address = `127.0.0.1:${await freeUdpPort()}`;
    const refusalOf = async (region: string) => {
      const file = "examples/client/destination.mjs";
      const program = installed.start(file, gateway, address, region);
      return { code: await program.ended, stderr: program.stderr };
    };
    expect(await refusalOf("atlantis")).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^destination_refused: region: .*"atlantis"\n$/),
    });
    const client = new ShredwayClient({ url: gateway });
    const { id } = await client.addDestination({ region: "frankfurt", address });
    expect(await refusalOf("frankfurt")).toEqual({
      code: 1,
      stderr: expect.stringMatching(/^destination_refused: \S+ belongs to another destination\n$/),
    });
    await client.removeDestination(id);
  });

  it("buys a tier, and a receiver that proves its ownership receives the shreds", async () => {
    const port = await freeUdpPort();
    const address = `127.0.0.1:${port}`;
    const script = "examples/udp-python/receive.py";
    const receiver = new Program(
      "python3",
      [script, `${port}`, "--count", "200"],
      installed.folder,
    );
    try {
      await until(() => receiver.stderr.includes("receiving on"), "the receiver");
      const destination = [
        "examples/client/destination.mjs",
        gateway,
        address,
        "frankfurt",
      ] as const;
      const printed = await installed.run(...destination, "--receiver");
      expect(printed).toMatch(/active verified by datagram, until/);
      const tier = await installed.run("examples/client/tier.mjs", gateway, chain, "500000000");
      expect(tier).toMatch(new RegExp(`^${signature} counted\ntier tier-2 of \\d+ lamports\n`));
      expect(tier).toMatch(/^ {2}tier-2 reached\n\S+Z upgraded from [\w -]+ to tier-2; /m);
      expect(await receiver.ended).toBe(0);
      expect(receiver.stderr).toMatch(/total: shreds 200, bad 0, challenges [1-9]/);
      expect(receiver.stdout).toMatch(
        /^(\d+ \d+ (data|code) \d+ 7531( data_complete)?( last_in_slot)?\n){200}$/,
      );
    } finally {
      await receiver.close();
    }
  });
});

describe.concurrent("programs of the documents", () => {
  const own = (code: string): string => code.replaceAll("http://127.0.0.1:8899", chain);

  it("docs/receivers.md: shreds.mjs reads shreds", async () => {
    const port = await freeUdpPort();
    const on = (code: string): string => code.replaceAll("20001", `${port}`);
    const program = installed.start(installed.write("docs/receivers.md", "shreds.mjs", on));
    const socket = createSocket("udp4");
    try {
      const packets = [makePacket(goodDataFields), makePacket(goodCodeFields), new Uint8Array(100)];
      // Once until it listens, then once more.
      await until(() => {
        for (const packet of packets) socket.send(packet, port, "127.0.0.1");
        return program.stdout.includes("refused");
      }, "its lines");
      expect(program.stdout).toMatch(/^1000n data 63$/m);
      expect(program.stdout).toMatch(/^1000n code 63$/m);
      expect(program.stdout).toMatch(/^refused: \w+$/m);
    } finally {
      socket.close();
      await program.close();
    }
  });

  it.each([
    ["deshred.mjs", "http://", "[0-9a-f]{128}"],
    ["preprocessed.mjs", "http://", "[0-9a-f]{128}"],
    ["entries.mjs", "", "\\d+ bytes"],
  ])("docs/stream-clients.md: %s prints a stream", async (name, scheme, line) => {
    const key = new URL(gateway).searchParams.get("api-key") ?? "";
    const program = installed.write("docs/stream-clients.md", name);
    const printed = await installed.run(program, `${scheme}${streams}`, key);
    expect(printed).toMatch(new RegExp(`^(\\d+ ${line}\n){3}$`));
  });

  it("docs/stream-clients.md: socket.mjs prints both dialects", async () => {
    const program = installed.write("docs/stream-clients.md", "socket.mjs");
    const printed = await installed.run(program, gateway.replace("http", "ws"));
    expect(printed).toMatch(new RegExp(`^(\\d+ ${signature} \\d+ (accounts|bytes)\n){4}$`));
  });

  it("docs/client.md: client.mjs recommends a tip", async () => {
    const printed = await installed.run(installed.write("docs/client.md", "client.mjs"), gateway);
    expect(printed).toMatch(/^pay \w{32,44}; the median of \d+ landed tips was \d+ lamports\n$/);
  });

  it("docs/nonces.md: pair.mjs lands one of two", async () => {
    const printed = await installed.run(
      installed.write("docs/nonces.md", "pair.mjs", own),
      gateway,
    );
    expect(printed).toMatch(
      /^\[ '(landed', 'superseded|superseded', 'landed)' \] next nonce \w+\n$/,
    );
  });

  it("docs/sandbox.md: first-transaction.mjs lands by the chain's own node", async () => {
    const printed = await installed.run(
      installed.write("docs/sandbox.md", "first-transaction.mjs", own),
    );
    expect(printed).toMatch(new RegExp(`^${signature} in slot \\d+\n$`));
  });
});

it("examples/README.md names every example", () => {
  const text = readFileSync("examples/README.md", "utf8");
  const files = readdirSync("examples", { recursive: true, withFileTypes: true });
  const programs = files.filter((file) => file.isFile() && file.name !== "README.md");
  expect(programs.length).toBeGreaterThan(10);
  for (const { name, parentPath } of programs) {
    expect(text).toContain(`${parentPath.replace("examples/", "")}/${name}`);
  }
});
