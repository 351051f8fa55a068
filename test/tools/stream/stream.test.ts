// `shredway stream` against the running service: both dialects, filters, refusals, ends and losses.

import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { encodeBase58 } from "../../../src/core/base58.ts";
import { closing } from "../../support/closing.ts";
import { freeUdpPort } from "../../support/network/free-ports.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { type Ended, Shredway, shredwayHere } from "../../support/processes/shredway.ts";
import { type RunningStreams, runningStreams } from "../../support/streams/stream-clients.ts";
import {
  accountOf,
  batchOf,
  type MadeTransaction,
  markerOf,
  slotOf,
  transactionOf,
  v0TransactionOf,
  voteProgram,
} from "../../support/streams/stream-relay.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const text = (account: Uint8Array) => encodeBase58(account);
const signatureOf = ({ signature }: MadeTransaction) => encodeBase58(signature);

/** Waits until `streams` streams are open and the relay uses their filters. */
async function inForce({ service }: RunningStreams, streams = 1): Promise<void> {
  await until(() => {
    const { accounts, filters } = service.status();
    return accounts.reduce((sum, { open }) => sum + open, 0) === streams && filters.isCurrent;
  }, "the stream");
}

async function running(...args: Parameters<typeof runningStreams>) {
  const streams = await runningStreams(...args);
  const url = `http://${streams.service.address}`;
  return { ...streams, url, words: ["stream", "--url", url, "--api-key", "alice"] };
}

function objectsIn({ stdout }: Ended): unknown[] {
  return stdout
    .trimEnd()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
}

describe("shredway stream", () => {
  it("prints slot, signature and delay of what matches its filters, and a summary", async () => {
    const streams = await running();
    const [a, b, c] = [accountOf(1), accountOf(2), accountOf(3)];
    const accounts = ["--include", text(a), "--include", text(b), "--exclude", text(c)];
    const result = shredwayHere(...streams.words, ...accounts, "--no-vote", "--count", "2");
    await inForce(streams);
    const [first, second] = [transactionOf([a]), v0TransactionOf([b, accountOf(5)], accountOf(9))];
    const others = [transactionOf([a, c]), transactionOf([a, voteProgram]), transactionOf([c])];
    streams.send(slotOf(120n, [batchOf([...others, first, second])]));
    const { code, stdout, stderr } = await result;
    expect(code).toBe(0);
    const [one = "", two = "", ...rest] = stdout.split("\n");
    expect(one).toMatch(new RegExp(`^120 {2}${signatureOf(first)} {2}[\\d.]+ (ns|µs|ms|s)$`));
    expect(two).toMatch(new RegExp(`^120 {2}${signatureOf(second)} {2}`));
    expect(rest).toEqual([""]);
    expect(stderr).toMatch(
      /^received 2 transactions in \d:\d\d, [\d.,]+\/s, delay p50 \S+ \S+ p99 \S+ \S+, slots 120 to 120, interruptions 0, absent slots 0$/m,
    );
  });

  it("prints objects, withdrawals included, and requires all accounts of --required", async () => {
    const streams = await running();
    const [a, b] = [accountOf(1), accountOf(2)];
    const filter = ["--required", text(a), "--required", text(b)];
    const result = shredwayHere(...streams.words, ...filter, "--count", "2", "--json");
    await inForce(streams);
    const [first, second] = [transactionOf([a, b]), transactionOf([b, a])];
    streams.send(
      slotOf(121n, [batchOf([first, transactionOf([a])]), markerOf(2, 118n), batchOf([second])]),
    );
    const ended = await result;
    const objects = objectsIn(ended);
    expect(objects).toHaveLength(3);
    expect(objects[0]).toEqual({
      kind: "transaction",
      slot: 121,
      signature: signatureOf(first),
      vote: false,
      createdAtNs: expect.stringMatching(/^\d{19}$/),
      delayNs: expect.any(Number),
    });
    expect(objects).toContainEqual({
      kind: "update_parent",
      slot: 121,
      fecSetIndex: 32,
      parentSlot: 118,
    });
    expect(objects.at(-1)).toMatchObject({ signature: signatureOf(second) });
  });

  it("prints only votes, and reads the key from the URL", async () => {
    const streams = await running();
    const url = `${streams.url}/?api-key=alice`;
    const result = shredwayHere("stream", "--url", url, "--vote", "--count", "1");
    await inForce(streams);
    const vote = transactionOf([accountOf(3), voteProgram]);
    streams.send(slotOf(120n, [batchOf([transactionOf(), vote])]));
    expect((await result).stdout).toMatch(new RegExp(`^120 {2}${signatureOf(vote)} .* {2}vote\n$`));
  });

  it.each(["preprocessed", "transactions"])("reads %s, with votes and delays", async (dialect) => {
    const streams = await running();
    const account = accountOf(2);
    const filter = ["--dialect", dialect, "--include", text(account), "--count", "2", "--json"];
    const result = shredwayHere(...streams.words, ...filter);
    await inForce(streams);
    const made = [v0TransactionOf([account], accountOf(9)), transactionOf([account, voteProgram])];
    streams.send(slotOf(120n, [batchOf([transactionOf(), ...made])]));
    expect(objectsIn(await result)).toEqual(
      made.map((transaction, i) => ({
        kind: "transaction",
        slot: 120,
        signature: signatureOf(transaction),
        vote: i === 1,
        createdAtNs: expect.stringMatching(/^\d{19}$/),
        delayNs: expect.any(Number),
      })),
    );
  });

  it("reads entries, with markers between them", async () => {
    const streams = await running();
    const result = shredwayHere(...streams.words, "--dialect", "entries", "--count", "3", "--json");
    await inForce(streams);
    const made = [
      transactionOf(),
      v0TransactionOf([accountOf(2)], accountOf(9)),
      transactionOf([accountOf(3), voteProgram]),
    ];
    const [one, two, three] = made;
    streams.send(
      slotOf(120n, [
        markerOf(1),
        batchOf(one ? [one] : []),
        batchOf([]),
        batchOf(two && three ? [two, three] : []),
      ]),
    );
    const { stdout } = await result;
    expect(objectsIn({ stdout, stderr: "", code: 0 })).toEqual(
      made.map((transaction, i) => ({
        kind: "transaction",
        slot: 120,
        signature: signatureOf(transaction),
        vote: i === 2,
        createdAtNs: null,
        delayNs: null,
      })),
    );
  });
});

describe("refusals", () => {
  it("name a refused key, a missing key and a missing scope, with exit code 1", async () => {
    const { url, keys } = await running();
    keys.set("bob", { id: "b", accountId: "b", accountName: "bob", scopes: ["submit"] });
    const refusal = async (...words: string[]) => {
      const { code, stdout, stderr } = await shredwayHere("stream", "--url", url, ...words);
      expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
      return stderr;
    };
    expect(await refusal("--api-key", "mallory")).toMatch(
      /^shredway stream: the server ended the stream: UNAUTHENTICATED: invalid API key; expected/m,
    );
    // Not in the present directory, which may have the sandbox's key.
    const elsewhere = ["env", "-C", temporaryFolder()];
    const { code, stderr } = await Shredway.in(elsewhere, "stream", "--url", url).end();
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /UNAUTHENTICATED: missing API key; .*--api-key-file FILE, --api-key KEY or SHREDWAY_API_KEY/,
    );
    expect(await refusal("--api-key", "bob")).toContain(
      "PERMISSION_DENIED: the API key does not have the scope stream; it has: submit",
    );
  });

  it("name a filter that the server does not accept", async () => {
    const { words } = await running("accountsMax: 1");
    const accounts = ["--include", text(accountOf(1)), "--include", text(accountOf(2))];
    const { code, stderr } = await shredwayHere(...words, ...accounts);
    expect(code).toBe(1);
    expect(stderr).toContain(
      "INVALID_ARGUMENT: accounts in all filters: expected at most 1, got 2",
    );
  });

  it("name an endpoint that is not reachable, or has no TLS", async () => {
    const { service } = await running();
    const closed = `http://127.0.0.1:${await freeUdpPort()}`;
    const unreachable = await shredwayHere("stream", "--url", closed);
    expect(unreachable).toMatchObject({ code: 1, stdout: "" });
    expect(unreachable.stderr).toMatch(/^shredway stream: connection to 127.*ECONNREFUSED/m);
    const other = await shredwayHere("stream", "--url", `https://${service.address}`);
    expect(other.stderr).toContain(`the endpoint has no TLS, write http://${service.address}`);
  });

  it.each([
    [["--include", "0"], "--include: "],
    [["--vote", "--no-vote"], "--vote and --no-vote exclude each other"],
    [
      ["--dialect", "fast"],
      '--dialect: invalid value "fast"; expected one of deshred, preprocessed',
    ],
    [
      ["--dialect", "entries", "--vote"],
      "--vote is not allowed with --dialect entries, which has no filters; expected --dialect deshred",
    ],
    [
      ["--dialect", "transactions", "--no-vote"],
      "--no-vote is not allowed with --dialect transactions",
    ],
    [
      ["--dialect", "entries", "--from-slot", "1"],
      "--from-slot is not allowed with --dialect entries",
    ],
    [["--from-slot", "-1"], '--from-slot: invalid value "-1"; expected a slot'],
    [["--url", "host:1"], '--url: invalid value "host:1"; expected http://host:port'],
    [["--ca", "x"], "--ca requires a URL with https, got http://127.0.0.1:10000"],
    [["--url", "https://a:1", "--ca", "/does/not/exist"], "--ca: cannot read /does/not/exist"],
    [["--count", "0"], '--count: invalid value "0"'],
    [["extra"], 'stream: unexpected argument "extra"'],
  ])("reject wrong usage: %j", async (words, message) => {
    const { code, stderr } = await shredwayHere("stream", ...words);
    expect(code).toBe(2);
    expect(stderr).toContain(message);
  });
});

/** Forwards connections to `to`; `cut` breaks all of them. */
async function proxyTo(to: string): Promise<{ readonly url: string; readonly cut: () => void }> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const { hostname, port } = new URL(`http://${to}`);
    const far = connect(Number(port), hostname);
    for (const socket of [near, far]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => sockets.delete(socket));
    }
    near.pipe(far).pipe(near);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  closing({
    close: () => {
      cut();
      server.close();
    },
  });
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- it listens on a port
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, cut };
}

describe("ends and losses", () => {
  it("connects again after a loss, and says so", async () => {
    const streams = await running();
    const proxy = await proxyTo(streams.service.address);
    const words = ["stream", "--url", proxy.url, "--api-key", "alice", "--count", "2"];
    const program = Shredway.run(...words);
    closing({ close: () => program.kill() });
    await inForce(streams);
    streams.send(slotOf(120n, [batchOf([transactionOf()])]));
    await program.printed(/^120 /m);
    proxy.cut();
    await until(() => streams.service.status().ends.get("client") === 1, "the loss");
    await inForce(streams);
    streams.send(slotOf(121n, [batchOf([transactionOf(), transactionOf()])]));
    const { code, stderr } = await program.end();
    expect(code).toBe(0);
    expect(stderr).toMatch(
      /^shredway stream: connection to \S+: .*; connecting again in [\d.]+ s$/m,
    );
    expect(stderr).toMatch(/^shredway stream: connected again after [\d.]+ s$/m);
    // The history has no slot that the program knows, because its first one is incomplete.
    expect(stderr).toContain(
      "the first slot is 121, expected at most 120; transactions may be missing",
    );
    expect(stderr).toMatch(/interruptions 1 \([\d.]+ s\)/);
  });

  it.each(["deshred", "preprocessed", "transactions"])(
    "continues %s after a loss without a gap or a repetition",
    async (dialect) => {
      const streams = await running();
      const proxy = await proxyTo(streams.service.address);
      const made = Array.from({ length: 5 }, () => transactionOf());
      const words = ["stream", "--url", proxy.url, "--api-key", "alice", "--dialect", dialect];
      const program = Shredway.run(...words, "--count", "5", "--json");
      closing({ close: () => program.kill() });
      await inForce(streams);
      streams.send(slotOf(110n, [batchOf(made.slice(0, 1))]));
      streams.send(slotOf(111n, [batchOf(made.slice(1, 4))]));
      await program.printed(new RegExp(made.slice(3, 4).map(signatureOf).join("")));
      proxy.cut();
      await until(() => streams.service.status().ends.get("client") === 1, "the loss");
      streams.send(slotOf(112n, [batchOf(made.slice(4))]));
      const { code, stdout, stderr } = await program.end();
      expect({ code, printed: objectsIn({ stdout, stderr, code }) }).toMatchObject({
        code: 0,
        printed: made.map((one) => ({ signature: signatureOf(one) })),
      });
      expect(stderr).toContain("cannot continue at slot 104: broadcast from 104 is not available");
      expect(stderr).toContain("continues at slot 111");
    },
  );

  it("continues live without a history, and says that transactions are missing", async () => {
    const streams = await running("replayBytes: 0");
    const proxy = await proxyTo(streams.service.address);
    const words = ["stream", "--url", proxy.url, "--api-key", "alice", "--count", "2"];
    const program = Shredway.run(...words);
    closing({ close: () => program.kill() });
    await inForce(streams);
    streams.send(slotOf(120n, [batchOf([transactionOf()])]));
    await program.printed(/^120 /m);
    proxy.cut();
    await until(() => streams.service.status().ends.get("client") === 1, "the loss");
    await program.printed(/transactions of this time are missing$/m, "stderr");
    await inForce(streams);
    streams.send(slotOf(121n, [batchOf([transactionOf()])]));
    const { code, stderr } = await program.end();
    expect(code).toBe(0);
    expect(stderr).toContain("cannot continue at slot 113: from_slot is not supported");
  });

  it("begins at --from-slot, and ends if the history does not have it", async () => {
    const streams = await running();
    const first = shredwayHere(...streams.words, "--count", "2");
    await inForce(streams);
    const made = [transactionOf(), transactionOf()];
    for (const [i, slot] of [110n, 111n].entries()) {
      streams.send(slotOf(slot, [batchOf(made.slice(i, i + 1))]));
    }
    await first;
    const from = (slot: string) =>
      shredwayHere(...streams.words, "--from-slot", slot, "--count", "1", "--json");
    const [signature] = made.slice(1).map(signatureOf);
    expect(objectsIn(await from("111"))).toMatchObject([{ slot: 111, signature }]);
    const refused = await from("100");
    expect(refused).toMatchObject({ code: 1, stdout: "" });
    expect(refused.stderr).toContain("OUT_OF_RANGE: broadcast from 100 is not available");
  });

  it("ends with exit code 1 and the reason if it reads too slowly, and at a revoked key", async () => {
    const streams = await running("queueBytes: 65536");
    const slow = Shredway.run(...streams.words, "--dialect", "entries");
    closing({ close: () => slow.kill() });
    await inForce(streams);
    slow.signal("SIGSTOP");
    const large = batchOf(Array.from({ length: 1500 }, () => transactionOf()));
    const ends = () => streams.service.status().ends;
    let slot = 110n;
    await until(() => {
      if (slot < 290n) streams.send(slotOf(slot++, [large]));
      return ends().get("lagged") === 1;
    }, "the end of the slow client");
    slow.signal("SIGCONT");
    const { code, stderr } = await slow.end();
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^shredway stream: the server ended the stream: RESOURCE_EXHAUSTED: lagged: \d+ messages/m,
    );
    const revoked = shredwayHere(...streams.words);
    await inForce(streams);
    streams.keys.clear();
    streams.clock.move(1000);
    expect((await revoked).stderr).toContain("UNAUTHENTICATED: revoked: ");
  });

  it("reads the key from a file, and ends in order at a signal", async () => {
    const streams = await running();
    const file = join(temporaryFolder(), "key");
    writeFileSync(file, "alice\n");
    const program = Shredway.run("stream", "--url", streams.url, "--api-key-file", file);
    closing({ close: () => program.kill() });
    await inForce(streams);
    await program.printed(/^0:\d\d .*delay - .*slot - /m, "stderr");
    program.signal("SIGINT");
    const { code, stderr } = await program.end();
    expect(code).toBe(0);
    expect(stderr).toMatch(/^received 0 transactions in .*no slot/m);
  });
});
