// examples/udp-c, udp-python and udp-rust as receivers of pushed transactions: of the real service, and of
// datagrams that a network loses, repeats and forges.

import { execFileSync, spawnSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { join } from "node:path";
import { base58 } from "@scure/base";
import { describe, expect, it } from "vitest";
import type { StreamMessage } from "../../src/relay/data-plane/relay-streams.ts";
import {
  endDatagram,
  gapDatagram,
  heartbeatDatagram,
  SharedDatagrams,
  stamp,
} from "../../src/relay/streams/push-datagrams.ts";
import { SandboxKeyPair } from "../../src/sandbox/chain/keys.ts";
import { closing } from "../support/closing.ts";
import { freeUdpPort } from "../support/network/free-ports.ts";
import { until } from "../support/network/udp-receiver.ts";
import { PushRun } from "../support/streams/push-run.ts";
import {
  accountOf,
  batchOf,
  markerOf,
  transactionOf,
  v0TransactionOf,
} from "../support/streams/stream-relay.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { v1Transfer } from "../support/transactions/v1-transaction.ts";
import { Program } from "./installed-package.ts";

const has = (program: string): boolean => spawnSync(program, ["--version"]).status === 0;

/** Command that receives; it is built in `folder` if necessary. */
const receivers: Readonly<Record<string, (folder: string) => readonly [string, ...string[]]>> = {
  gcc: (folder) => {
    const program = join(folder, "transactions-c");
    const flags = ["-std=c11", "-O2", "-Wall", "-Wextra", "-Werror"];
    execFileSync("gcc", [...flags, "-o", program, "examples/udp-c/transactions.c"]);
    return [program];
  },
  python3: () => ["python3", "examples/udp-python/transactions.py"],
  rustc: (folder) => {
    const program = join(folder, "transactions-rust");
    const flags = ["--edition", "2021", "-O", "-D", "warnings"];
    execFileSync("rustc", [...flags, "-o", program, "examples/udp-rust/transactions.rs"]);
    return [program];
  },
};

interface Receiver {
  readonly program: Program;
  readonly address: string;
  readonly port: number;
}

async function receiverOf(name: string, ...options: string[]): Promise<Receiver> {
  const [command = "", ...args] = receivers[name]?.(temporaryFolder()) ?? [];
  const port = await freeUdpPort();
  const words = [...args, `${port}`, "--bind", "127.0.0.1", ...options];
  const program = closing(new Program(command, words));
  await until(() => program.stderr.includes("receiving on 127.0.0.1"), "the receiver");
  return { program, address: `127.0.0.1:${port}`, port };
}

function messageOf(content: Uint8Array, fields: Partial<StreamMessage> = {}): StreamMessage {
  return {
    kind: "transaction",
    tier: "tier-1",
    filters: [],
    slot: 120n,
    parent: 119n,
    arrivalNs: 1n,
    generation: 0,
    batchIndex: 32,
    ordinal: 5,
    shredIndex: 40,
    isVote: false,
    replay: 0,
    content,
    ...fields,
  };
}

const encoder = new SharedDatagrams();
const streamId = Buffer.from("00112233aabbccdd", "hex");
const signature = new Uint8Array(64).fill(9);
signature.set([0, 0]); // base58 has a digit for each leading zero
const legacy = transactionOf().wire;
legacy.set(signature, 1);
const v0 = v0TransactionOf([accountOf(1)], accountOf(2)).wire;
const pair = new SandboxKeyPair(new Uint8Array(32).fill(3));
const v1 = v1Transfer(pair, accountOf(1), 5n, { blockhash: accountOf(8) });
const loadedAddresses = { writable: [accountOf(1)], readonly: [accountOf(2)] };
const textOf = (wire: Uint8Array, at = 1) => base58.encode(wire.subarray(at, at + 64));

/** Datagrams in the order of their arrival: number of the sequence, counters, and the line that follows. */
const script: readonly {
  readonly datagram: Buffer;
  readonly sequence: bigint;
  readonly skipped?: number;
  readonly dropped?: number;
  readonly stream?: Buffer;
  readonly line: string | null;
}[] = [
  { datagram: heartbeatDatagram(0n, 1n, 2n), sequence: 7n, dropped: 4, line: null },
  {
    datagram: encoder.copyOf(messageOf(legacy, { isVote: true })),
    sequence: 8n,
    dropped: 4,
    line: `120 40 32 5 legacy ${legacy.length} ${textOf(legacy)} vote`,
  },
  // 9 and 10 are lost, and 12 arrives before 11.
  {
    datagram: encoder.copyOf(messageOf(v0, { loadedAddresses })),
    sequence: 12n,
    skipped: 3,
    dropped: 4,
    line: `120 40 32 5 v0 ${v0.length} ${textOf(v0)} resolved`,
  },
  {
    datagram: encoder.copyOf(messageOf(v0, { loadedAddresses: null, slot: 2n ** 63n })),
    sequence: 11n,
    dropped: 4,
    line: `${2n ** 63n} 40 32 5 v0 ${v0.length} ${textOf(v0)} unresolved`,
  },
  // Somebody else's.
  { datagram: endDatagram(1n, 1n, "forged"), sequence: 13n, stream: Buffer.alloc(8), line: null },
  {
    datagram: encoder.copyOf(messageOf(v1)),
    sequence: 13n,
    skipped: 3,
    dropped: 4,
    line: `120 40 32 5 v1 ${v1.length} ${textOf(v1, v1.length - 64)}`,
  },
  {
    datagram: encoder.copyOf(messageOf(new Uint8Array(32), { kind: "restart", batchIndex: 96 })),
    sequence: 14n,
    skipped: 3,
    dropped: 4,
    line: "withdrawal 120 before 96 parent 119",
  },
  // The service dropped six messages, which took 15 to 20.
  {
    datagram: gapDatagram({ count: 6, slots: { first: 121n, last: 122n } }, 1n),
    sequence: 21n,
    skipped: 3,
    dropped: 10,
    line: "gap 6 slots 121 to 122",
  },
  {
    datagram: endDatagram(1n, 1n, "revoked: the API key is not valid any more"),
    sequence: 22n,
    skipped: 3,
    dropped: 10,
    line: "end revoked: the API key is not valid any more",
  },
  // A new push after the end.
  {
    datagram: encoder.copyOf(messageOf(legacy)),
    sequence: 0n,
    stream: Buffer.alloc(8, 1),
    line: `120 40 32 5 legacy ${legacy.length} ${textOf(legacy)}`,
  },
];

for (const name of Object.keys(receivers)) {
  describe.skipIf(!has(name))(`a receiver of transactions made by ${name}`, () => {
    it("proves its address to the service, and prints what the service pushes", async () => {
      const run = await PushRun.open();
      const ann = await run.customer("ann");
      const { program, address } = await receiverOf(name, "--count", "40");
      const { id } = await run.destination(ann, { address });
      await ann.client.startTransactionPush(id, {});
      await run.inForce(1);
      const made = Array.from({ length: 40 }, () => transactionOf());
      const batches = [markerOf(1), batchOf(made.slice(0, 25)), batchOf(made.slice(25))];
      const slot = run.sendBatches(batches);
      expect(await program.ended).toBe(0);
      const printed = program.stdout.trimEnd().split("\n");
      expect(printed.map((line) => line.split(" ")[6] ?? "").toSorted()).toEqual(
        made.map(({ wire }) => textOf(wire)).toSorted(),
      );
      for (const line of printed) {
        expect(line).toMatch(new RegExp(`^${slot} \\d+ \\d+ \\d+ legacy ${legacy.length} `));
      }
      expect(program.stderr).toMatch(
        /^total: {2}transactions 40 {2}lost 0 {2}dropped 0 {2}too long 0 {2}withdrawals 0 {2}bad \d+ {2}challenges [1-3]$/m,
      );
    });

    it("distinguishes losses in the network from what the service dropped, and ignores others", async () => {
      const { program, port } = await receiverOf(name, "--count", "5");
      const socket = createSocket("udp4");
      closing({ close: () => void socket.close() });
      socket.bind(0, "127.0.0.1");
      await once(socket, "listening");
      const send = async (packet: Uint8Array) => {
        await new Promise((resolve) => socket.send(packet, port, "127.0.0.1", resolve));
      };
      const stamped = script.map(({ datagram, sequence, skipped = 0, dropped = 0, stream }) => {
        const copy = Buffer.from(datagram);
        stamp(copy, { streamId: stream ?? streamId, sequence, skipped, dropped });
        return copy;
      });
      const [first = Buffer.alloc(0), ...others] = stamped;
      for (const packet of [first.subarray(0, 63), Buffer.alloc(1203, 1), Buffer.alloc(0)]) {
        await send(packet);
      }
      await send(first);
      for (const packet of others.slice(0, -1)) await send(packet);
      const summary =
        /^second: {2}transactions 4 {2}lost 2 {2}dropped 6 {2}too long 3 {2}withdrawals 1 {2}bad 4 {2}challenges 0$/m;
      await until(() => summary.test(program.stderr), "a summary of the first push");
      await send(stamped.at(-1) ?? first);
      expect(await program.ended).toBe(0);
      expect(program.stdout.trimEnd().split("\n")).toEqual(
        script.flatMap(({ line }) => line ?? []),
      );
      expect(program.stderr).toMatch(/^total: {2}transactions 5 {2}lost 0 {2}dropped 0 /m);
    });

    it("accepts only the datagrams of --stream", async () => {
      const hex = streamId.toString("hex");
      const { program, port } = await receiverOf(name, "--stream", hex, "--count", "1");
      const socket = createSocket("udp4");
      closing({ close: () => void socket.close() });
      for (const [i, id] of [Buffer.alloc(8, 1), streamId].entries()) {
        const datagram = encoder.copyOf(messageOf(legacy, { slot: BigInt(i) }));
        stamp(datagram, { streamId: id, sequence: 0n, skipped: 0, dropped: 0 });
        await new Promise((resolve) => socket.send(datagram, port, "127.0.0.1", resolve));
      }
      expect(await program.ended).toBe(0);
      expect(program.stdout).toMatch(/^1 .*\n$/);
      expect(program.stderr).toContain("bad 1 ");
    });
  });
}
