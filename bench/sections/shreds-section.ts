// From a tip to the shreds it buys: the rate of registrations, the delay of the feed, and the cost
// of a day of many tips.
//
// The whole service in its own process (shreds-process.ts), real HTTP, SQLite and UDP, all on
// loopback and the same CPUs as the customer.

import { type ChildProcess, spawn } from "node:child_process";
import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { PacedSender } from "../../src/relay/data-plane/paced-sender.ts";
import { Shredder } from "../../src/relay/data-plane/shredder.ts";
import { LineReader } from "../load/http-load.ts";
import { serviceArguments } from "../load/service-arguments.ts";
import { Payer, registrationBody } from "../load/shred-tips.ts";
import { fillStore } from "../load/shreds-store.ts";
import { type Line, numberOf, textOf } from "../report/lines.ts";
import { quantile, summarise } from "../report/statistics.ts";
import { number } from "../report/table.ts";
import { finding, type Section } from "./section.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tipBytes = new Uint8Array(32).fill(5);
const entriesPerRequest = 25;
const connections = 16;
const tierTip = 200_000_000n;

class Server {
  readonly #child: ChildProcess;
  readonly #lines: LineReader;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64 });
  readonly port: number;
  readonly keys: readonly string[];
  readonly relay: string;
  readonly startNs: number;
  readonly rss: number;

  private constructor(child: ChildProcess, lines: LineReader, ready: Line) {
    this.#child = child;
    this.#lines = lines;
    this.port = numberOf(ready, "port");
    this.keys = textOf(ready, "keys").split(" ");
    this.relay = textOf(ready, "relay");
    this.startNs = numberOf(ready, "start_ns");
    this.rss = numberOf(ready, "rss");
  }

  static async open(folder: string, accounts: number): Promise<Server> {
    const program = join(root, "bench/load/shreds-process.ts");
    const words = [...serviceArguments, program, folder, String(accounts), pubkeyOf(tipBytes)];
    const child = spawn(process.execPath, words, { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
    const lines = new LineReader(child);
    return new Server(child, lines, await lines.next());
  }

  async memory(): Promise<number> {
    this.#child.stdin?.write("\n");
    return numberOf(await this.#lines.next(), "rss");
  }

  post(path: string, key: string, body: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const headers = { api_key: key, "content-type": "application/json" };
      const options = { port: this.port, path, method: "POST", agent: this.#agent, headers };
      const asking = request(options, (answer) => {
        const pieces: Buffer[] = [];
        answer.on("data", (piece: Buffer) => pieces.push(piece));
        answer.on("end", () => resolve(Buffer.concat(pieces).toString()));
        answer.on("error", reject);
      });
      asking.on("error", reject);
      asking.end(body);
    });
  }

  async call(method: string, key: string, params: unknown): Promise<unknown> {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    const answer: unknown = JSON.parse(await this.post("/relay", key, body));
    if (typeof answer === "object" && answer !== null && "result" in answer) return answer.result;
    throw new Error(`${method}: ${JSON.stringify(answer)}`);
  }

  async close(): Promise<void> {
    this.#agent.destroy();
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }
}

function acceptedIn(answer: string): number {
  const parsed: unknown = JSON.parse(answer);
  if (typeof parsed !== "object" || parsed === null || !("accepted" in parsed)) {
    throw new Error(`expected registrations, got ${answer.slice(0, 200)}`);
  }
  return Array.isArray(parsed.accepted) ? parsed.accepted.length : 0;
}

/**
 * Registrations acknowledged per second, requested on several connections as fast as answers come.
 */
async function rate(server: Server, payer: Payer, wanted: number): Promise<number> {
  const bodies = Array.from({ length: Math.ceil(wanted / entriesPerRequest) }, () =>
    registrationBody(Array.from({ length: entriesPerRequest }, () => payer.tip(tipBytes, 1000n))),
  );
  const [key = ""] = server.keys;
  let next = 0;
  let accepted = 0;
  const begin = performance.now();
  const caller = async (): Promise<void> => {
    for (let body = bodies[next++]; body !== undefined; body = bodies[next++]) {
      const count = acceptedIn(await server.post("/shred-pay", key, body));
      accepted += count;
    }
  };
  await Promise.all(Array.from({ length: connections }, caller));
  const seconds = (performance.now() - begin) / 1000;
  if (accepted !== bodies.length * entriesPerRequest) {
    throw new Error(`expected every tip to be accepted, got ${accepted}`);
  }
  return accepted / seconds;
}

const feedGapNs = 200_000;

/** Shreds at 5,000 a second for this time. */
function feedFor(seconds: number, to: string): PacedSender {
  const shredder = new Shredder(new Uint8Array(32).fill(3));
  const packets: Uint8Array[] = [];
  for (let slot = 1_000n; packets.length < (seconds * 1e9) / feedGapNs; slot++) {
    const position = {
      slot,
      parentOffset: 1,
      version: 1,
      chainedRoot: new Uint8Array(32),
      nextFecSetIndex: 0,
    };
    const options = { position, referenceTick: 1, lastInSlot: true };
    packets.push(...shredder.shred(Buffer.alloc(20_000), options).packets);
  }
  const sender = PacedSender.open({ to, from: "127.0.0.2:0" });
  sender.enqueue(
    packets,
    BigUint64Array.from(packets, (_, i) => BigInt(i * feedGapNs)),
  );
  return sender;
}

interface Listener {
  readonly key: string;
  readonly socket: Socket;
  /** Arrival time of the first shred. */
  firstMs: number | null;
}

async function openListener(server: Server, key: string, host: string): Promise<Listener> {
  const socket = createSocket("udp4");
  socket.unref(); // it must not keep the process alive after a failure
  socket.bind(0, host);
  await once(socket, "listening");
  const listener: Listener = { key, socket, firstMs: null };
  const proved = new Promise<void>((resolve) => {
    socket.on("message", (packet, from) => {
      if (packet.length > 64) {
        listener.firstMs ??= performance.now();
        return;
      }
      socket.send(packet, from.port, from.address); // the challenge
      resolve();
    });
  });
  const address = `${host}:${socket.address().port}`;
  await server.call("addDestination", key, [{ region: "frankfurt", address }]);
  await proved;
  return listener;
}

interface Delay {
  /** Time from the request to its response. */
  readonly answerMs: number;
  /** Time from the response to the first shred; below 0: the shred was first. */
  readonly shredMs: number;
}

/** One tip that buys tier-1, from the request to the first shred. */
async function upgrade(server: Server, listener: Listener, payer: Payer): Promise<Delay> {
  const body = registrationBody([payer.tip(tipBytes, tierTip)]);
  const begin = performance.now();
  acceptedIn(await server.post("/shred-pay", listener.key, body));
  const answered = performance.now();
  while (listener.firstMs === null) {
    if (performance.now() - answered > 5000)
      throw new Error("expected a shred within five seconds, got none");
    await new Promise((resolve) => setImmediate(resolve));
  }
  listener.socket.close();
  return { answerMs: answered - begin, shredMs: listener.firstMs - answered };
}

async function delays(server: Server, payer: Payer): Promise<Delay[]> {
  const listeners: Listener[] = [];
  // One address each: challenges per address are limited.
  for (const [i, key] of server.keys.slice(1).entries()) {
    listeners.push(await openListener(server, key, `127.0.1.${i + 1}`));
  }
  await new Promise((resolve) => setTimeout(resolve, 200)); // the last proofs
  const sender = feedFor(5 + listeners.length / 50, server.relay);
  try {
    const found: Delay[] = [];
    for (const listener of listeners) {
      found.push(await upgrade(server, listener, payer));
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    return found;
  } finally {
    sender.close();
  }
}

interface Scale {
  readonly startMs: number;
  readonly rssAtStart: number;
  readonly rssAfter: number;
  readonly perSecond: number;
}

async function scale(folder: string, size: { accounts: number; registrations: number }) {
  await fillStore(folder, size);
  const server = await Server.open(folder, 1);
  try {
    const payer = new Payer(Buffer.alloc(32, 2));
    const perSecond = await rate(server, payer, Math.min(20_000, size.registrations / 10));
    const { startNs, rss } = server;
    const after = await server.memory();
    return { startMs: startNs / 1e6, rssAtStart: rss, rssAfter: after, perSecond };
  } finally {
    await server.close();
  }
}

interface Measured {
  readonly rates: readonly number[];
  readonly delays: readonly Delay[];
  readonly full: Scale;
  readonly size: { readonly accounts: number; readonly registrations: number };
}

const megabytes = (bytes: number): string => number(bytes / 1e6);

function report({ rates, delays: found, full, size }: Measured): Section {
  const perSecond = summarise(rates);
  const answers = found.map(({ answerMs }) => answerMs);
  const shreds = found.map(({ shredMs }) => shredMs);
  const percentiles = (values: readonly number[]): string[] =>
    [0.5, 0.99].map((part) => number(quantile(values, part)));
  const restart = summarise([full.startMs / 1000]);
  const tail = summarise([quantile(shreds, 0.99)]);
  return {
    name: "shreds",
    title: "From a tip to the shreds it buys",
    notes: [
      `POST /shred-pay with ${entriesPerRequest} entries on ${connections} connections: every one decoded, ` +
        "sanitised, its signature verified, kept in SQLite with a wait for the disk, counted. No node is " +
        "asked. The customer runs on the same CPUs.",
      `${found.length} accounts with a verified destination and no tier register one tip each, while a source ` +
        `sends a shred every ${feedGapNs / 1000} µs. The table is active before the answer is sent, so the ` +
        "first shred may arrive before the answer.",
      `With a store of ${number(size.registrations)} counted tips and ${number(size.accounts)} accounts, the ` +
        `process has ${megabytes(full.rssAtStart)} MB of memory at startup. It has ${megabytes(full.rssAfter)} MB ` +
        `after ${number(Math.min(20_000, size.registrations / 10))} further registrations, made at ` +
        `${number(full.perSecond)}/s.`,
    ],
    tables: [
      {
        title: "A tip that buys a tier, ms",
        columns: ["from … to", "p50", "p99"],
        rows: [
          ["request to acknowledgement", ...percentiles(answers)],
          ["acknowledgement to the first shred at the new tier", ...percentiles(shreds)],
        ],
      },
    ],
    findings: [
      finding("durable registrations per second", perSecond, {
        target: 5000,
        unit: "/s",
        bound: "at least",
      }),
      finding("acknowledgement to the first shred at the new tier, p99", tail, {
        target: 5,
        unit: "ms",
      }),
      finding(
        `start with ${number(size.accounts)} accounts and ${number(size.registrations)} tips`,
        restart,
        { target: 5, unit: "s" },
      ),
    ],
    values: {
      "registrations per second": perSecond,
      "acknowledgement, ms": summarise(answers),
      "acknowledgement to first shred, ms": summarise(shreds),
      "start, s": restart,
    },
  };
}

export async function shredsSection({
  rounds,
  small,
}: {
  rounds: number;
  small: boolean;
}): Promise<Section> {
  const folder = mkdtempSync(join(tmpdir(), "shredway-bench-"));
  const payer = new Payer(Buffer.alloc(32, 1));
  const listeners = small ? 5 : 200;
  const size = small
    ? { accounts: 1000, registrations: 20_000 }
    : { accounts: 100_000, registrations: 5_000_000 };
  try {
    const server = await Server.open(join(folder, "rate"), 1 + listeners);
    const rates: number[] = [];
    let found: Delay[];
    try {
      const count = small ? 1000 : 20_000;
      await rate(server, payer, count / 4); // warm-up for the compiler
      for (let i = 0; i < rounds; i++) rates.push(await rate(server, payer, count));
      found = await delays(server, payer);
    } finally {
      await server.close();
    }
    const full = await scale(join(folder, "full"), size);
    return report({ rates, delays: found, full, size });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
