// `shredway race` with decoded streams, among them and against a feed of shreds, over real sockets.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { PacedSender } from "../../../src/relay/data-plane/paced-sender.ts";
import { TransactionCollector } from "../../../src/tools/race/transaction-collector.ts";
import { closing } from "../../support/closing.ts";
import { freeUdpPort } from "../../support/network/free-ports.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { Shredway, shredwayHere } from "../../support/processes/shredway.ts";
import { runningStreams } from "../../support/streams/stream-clients.ts";
import { batchOf, slotOf, transactionOf } from "../../support/streams/stream-relay.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

describe("race with streams", () => {
  it("compares the transactions of two streams and of a feed in one report", async () => {
    const streams = await runningStreams();
    const port = await freeUdpPort();
    const key = join(temporaryFolder(), "key");
    writeFileSync(key, "alice\n");
    const { address } = streams.service;
    const words = [
      "race --json --settle 200 --seconds 100",
      `--feed udp=127.0.0.1:${port}`,
      `--stream fast=http://${address} --stream-key fast=${key}`,
      `--stream other=entries:http://${address}/?api-key=alice`,
    ];
    const program = Shredway.run(...words.join(" ").split(" "));
    closing({ close: () => program.kill() });
    await until(() => {
      const { accounts, filters } = streams.service.status();
      return accounts.reduce((sum, { open }) => sum + open, 0) === 2 && filters.isCurrent;
    }, "both streams");
    const feed = closing(PacedSender.open({ to: `127.0.0.1:${port}`, from: "127.0.0.1:0" }));
    const send = (slot: bigint): void => {
      const packets = slotOf(slot, [batchOf(Array.from({ length: 20 }, () => transactionOf()))]);
      streams.send(packets);
      // The feed has every slot but one.
      if (slot !== 114n) feed.enqueue(packets, new BigUint64Array(packets.length));
    };
    send(110n);
    await program.printed(/("shreds":20,.*){3}/);
    for (let slot = 111n; slot < 116n; slot++) send(slot);
    await program.printed(/"judged":5/);
    program.signal("SIGINT");
    const { code, stdout } = await program.end();
    expect(code).toBe(0);
    const last: unknown = JSON.parse(stdout.trimEnd().split("\n").at(-1) ?? "");
    expect(last).toMatchObject({
      final: true,
      unit: "transaction",
      verified: false,
      shreds: { distinct: 100, data: 100, code: 0 },
      slots: { judged: 5, edge: 1 },
      feeds: [
        { name: "udp", shreds: 100, distinct: 80, coverage: 0.8 },
        { name: "fast", received: 120, distinct: 100, coverage: 1 },
        { name: "other", received: 120, distinct: 100, coverage: 1 },
      ],
    });
  });

  it("fails at once if a stream refuses the first call", async () => {
    const { service } = await runningStreams();
    const url = `http://${service.address}`;
    const words = [
      "race",
      "--stream",
      `a=${url}/?api-key=alice`,
      "--stream",
      `b=${url}/?api-key=x`,
    ];
    const { code, stderr } = await shredwayHere(...words);
    expect(code).toBe(1);
    expect(stderr).toContain("--stream b: the server ended the stream: UNAUTHENTICATED");
  });

  it.each([
    [["--stream", "a=http://x:1"], "got 1 feed; expected 2 to 8"],
    [["--stream", "a=ftp://x:1", "--stream", "b=http://x:1"], "--stream a: invalid value"],
    [
      ["--stream", "a=fast:http://x:1"],
      '--stream a: invalid dialect "fast"; expected one of deshred',
    ],
    [["--stream", "a=http://x:1", "--csv", "f"], "--stream and --csv exclude each other"],
    [["--stream", "a=http://x:1", "--capture", "b=f"], "--stream and --capture exclude each other"],
    [["--stream-key", "a=/does/not/exist"], "/does/not/exist"],
    [
      ["--stream", "a=http://x:1", "--feed", "b=20001@192.0.2.1", "--feed", "c=20001@192.0.2.2"],
      "--feed c: port 20001 is also the port of b; with --stream",
    ],
  ])("rejects wrong usage: %j", async (words, message) => {
    const { code, stderr } = await shredwayHere("race", ...words);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(message) });
  });
});

describe("TransactionCollector", () => {
  it("takes the first observation in each feed, and counts repetitions and late ones", () => {
    const settled: [number, number[][]][] = [];
    const collector = new TransactionCollector({
      feeds: 2,
      settleNs: 100,
      onSettled: ({ slot, times }) =>
        settled.push([slot, [...times.values()].map((row) => [...row])]),
    });
    const note = (feed: number, signature: string, timeNs: number, slot = 7) =>
      collector.note({ feed, slot, signature, timeNs });
    note(0, "a", 10);
    note(1, "a", 15);
    note(1, "b", 20);
    note(0, "a", 30);
    collector.settle(119);
    expect(settled).toEqual([]);
    collector.settle(120);
    note(0, "b", 130);
    note(0, "a", 140, 8);
    expect(settled).toEqual([
      [
        7,
        [
          [10, 15],
          [Number.POSITIVE_INFINITY, 20],
        ],
      ],
    ]);
    expect(collector.open.map(({ slot, distinct }) => [slot, distinct])).toEqual([[8, 1]]);
    const [first, second] = collector.counts;
    expect(first).toMatchObject({ arrivals: 4, repeats: 1, late: 1, firstNs: 10, lastNs: 140 });
    expect(second).toMatchObject({ arrivals: 2, repeats: 0, late: 0, beyond: 0 });
  });
});
