// Subscribers of decoded streams for the bench, in its own process: minimal gRPC clients.
//
// 45 of 50 name accounts and note the time of every message; the others receive every transaction that is
// not a vote, or all entries, and only read. One more may stop reading.

import { type ClientHttp2Session, connect } from "node:http2";
import { encodeBase58 } from "../../src/core/base58.ts";
import { systemClock } from "../../src/core/clock.ts";
import { GrpcStreamCall } from "../../src/core/grpc/grpc-stream-call.ts";
import { MessageReader } from "../../src/core/grpc/protobuf.ts";
import { frameMessage } from "../../src/core/grpc/status.ts";
import { encodeRequest, streamPaths } from "../../src/tools/stream/stream-messages.ts";
import type { FilterChoice, StreamDialect } from "../../src/tools/stream/stream-target.ts";
import { accountOf, accountsInTraffic, type Traffic } from "./stream-traffic.ts";

export const subscriberCount = 50;
const timedCount = 45;
const accountsPerFilter = 10;
const messageBytesMax = 4 << 20;
const nanosecondsPerSecond = 1e9;
const noFilter: FilterChoice = { vote: undefined, include: [], exclude: [], required: [] };
/** The others, in turn. */
const broadChoices: readonly (readonly [StreamDialect, FilterChoice])[] = [
  ["deshred", { ...noFilter, vote: false }],
  ["entries", noFilter],
];

interface Timed {
  readonly accounts: readonly number[];
  received: number;
}

export class StreamSubscribers {
  readonly #calls: GrpcStreamCall[] = [];
  readonly #timed: Timed[] = [];
  readonly #url: string;
  #delaysNs: number[] = [];
  #stopped: ClientHttp2Session | undefined;
  /** How streams ended; empty: all are open. */
  readonly ends: string[] = [];

  constructor(address: string) {
    this.#url = `http://${address}`;
    for (let i = 0; i < timedCount; i++) this.#openTimed(i);
    for (let i = 0; i < subscriberCount - timedCount; i++) {
      const [dialect, filter] = broadChoices[i % broadChoices.length] ?? ["entries", noFilter];
      this.#open(dialect, filter, () => undefined);
    }
  }

  /** Opens one more stream, of all entries, and never reads it. */
  openStopped(): void {
    const session = connect(this.#url);
    session.on("error", () => undefined);
    const stream = session.request({
      ":method": "POST",
      ":path": streamPaths.entries,
      "content-type": "application/grpc",
      te: "trailers",
      "x-token": "k",
    });
    stream.on("error", () => undefined);
    stream.end(frameMessage(new Uint8Array()));
    this.#stopped = session;
  }

  /** Messages of the subscribers that name accounts. */
  get received(): number {
    return this.#timed.reduce((sum, { received }) => sum + received, 0);
  }

  /** The number that they should receive of this traffic. */
  expectedOf({ named }: Traffic): number {
    const of = ({ accounts }: Timed): number =>
      accounts.reduce((sum, account) => sum + (named[account] ?? 0), 0);
    return this.#timed.reduce((sum, one) => sum + of(one), 0);
  }

  /** From the receive time of the last shred to this process, of each message. */
  takeDelays(): readonly number[] {
    const delays = this.#delaysNs;
    this.#delaysNs = [];
    return delays;
  }

  close(): void {
    for (const call of this.#calls) call.close();
    this.#stopped?.destroy();
  }

  #openTimed(index: number): void {
    const accounts = Array.from(
      { length: accountsPerFilter },
      (_, i) => (index * accountsPerFilter + i) % accountsInTraffic,
    );
    const timed: Timed = { accounts, received: 0 };
    this.#timed.push(timed);
    const include = accounts.map((account) => encodeBase58(accountOf(account)));
    this.#open("deshred", { ...noFilter, include }, (message) => {
      const update = new MessageReader(message);
      const createdAt = update.message(5);
      // Slots and pings are not counted.
      if (!createdAt || !update.message(2)) return;
      timed.received++;
      const createdNs =
        Number(createdAt.uint(1)) * nanosecondsPerSecond + Number(createdAt.uint(2));
      this.#delaysNs.push(Number(systemClock.nowNs()) - createdNs);
    });
  }

  #open(
    dialect: StreamDialect,
    filter: FilterChoice,
    onMessage: (message: Uint8Array) => void,
  ): void {
    const call = new GrpcStreamCall({
      url: this.#url,
      path: streamPaths[dialect],
      metadata: { "x-token": "k" },
      messageBytesMax,
      clock: systemClock,
      onOpen: () => undefined,
      onMessage,
      onEnd: ({ status, detail }) => this.ends.push(`${status}: ${detail}`),
    });
    call.send(encodeRequest(dialect, filter));
    this.#calls.push(call);
  }
}
