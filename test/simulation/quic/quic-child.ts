// The simulated process of the QUIC connections: the real program on a simulated clock, network and channel.

import { EventEmitter } from "node:events";
import { Duplex } from "node:stream";
import type { SupervisedChild } from "../../../src/gateway/tpu/confined-process.ts";
import { EndpointProcess } from "../../../src/gateway/tpu/endpoint-process.ts";
import { FrameReader } from "../../../src/gateway/tpu/frames.ts";
import { decodeRequest, encodeAnswer, requestBytesMax } from "../../../src/gateway/tpu/messages.ts";
import { channelDescriptor } from "../../../src/gateway/tpu/start-quic-process.ts";
import { ProcessClock, type WallTime } from "../simulated-time.ts";
import type { LeaderNetwork } from "./leader-network.ts";

/** "hangs": it runs, and does nothing. "nonsense": it writes what no such process writes. */
export const processFailures = ["exits", "hangs", "nonsense"] as const;
export type ProcessFailure = (typeof processFailures)[number];

const startMs = 120;
const channelMs = 0.03;
const exitMs = 5;

/** The gateway's end of the channel. */
class Channel extends Duplex {
  readonly #written: (bytes: Buffer) => void;

  constructor(written: (bytes: Buffer) => void) {
    super();
    this.#written = written;
  }

  override _write(bytes: Buffer, _: BufferEncoding, done: () => void): void {
    this.#written(Buffer.from(bytes));
    done();
  }

  override _read(): void {
    // The process pushes.
  }
}

export class QuicChild extends EventEmitter implements SupervisedChild {
  readonly pid = undefined;
  readonly stderr = null;
  readonly stdio: readonly unknown[];
  exitCode: number | null = null;
  signalCode: string | null = null;
  readonly #wall: WallTime;
  readonly #clock: ProcessClock;
  readonly #channel: Channel;
  #isHanging = false;
  #isOver = false;

  constructor(wall: WallTime, network: LeaderNetwork) {
    super();
    const clock = new ProcessClock(wall);
    const program = new EndpointProcess({
      clock,
      quiche: () => network.quicheOf(clock),
      openSockets: (bind, listener) =>
        network.openSockets(bind, (packet) => {
          if (!this.#isHanging) listener(packet);
        }),
      confine: () => "",
      inNextTurn: (action) => void clock.after(0, action),
      answer: (answer) => this.#answer(Buffer.from(encodeAnswer(answer))),
      end: () => this.#end(0, null),
    });
    const reader = new FrameReader(requestBytesMax, (kind, body) => {
      if (!this.#isHanging) program.handle(decodeRequest(kind, body));
    });
    this.#wall = wall;
    this.#clock = clock;
    // Everything that comes earlier waits in the channel.
    const runsNs = wall.time.nowNs + startMs * 1e6;
    this.#channel = new Channel((bytes) => {
      const delayMs = Math.max(0, (runsNs - wall.time.nowNs) / 1e6) + channelMs;
      clock.after(delayMs, () => reader.push(bytes));
    });
    const stdio: unknown[] = [];
    stdio[channelDescriptor] = this.#channel;
    this.stdio = stdio;
  }

  fail(failure: ProcessFailure): void {
    if (failure === "exits") this.#end(1, null);
    if (failure === "hangs") {
      this.#isHanging = true;
      this.#clock.end();
    }
    if (failure === "nonsense") this.#answer(Buffer.from([1, 0, 0, 0, 99, 0]));
  }

  kill(): void {
    this.#end(null, "SIGKILL");
  }

  /** The gateway's process was killed: this one ends with it, and nobody hears of it. */
  endWithGateway(): void {
    this.removeAllListeners();
    this.#channel.removeAllListeners();
    this.#isHanging = true;
    this.#clock.end();
  }

  unref(): void {
    // Nothing waits for it.
  }

  #answer(bytes: Buffer): void {
    if (this.#isHanging) return;
    this.#clock.after(channelMs, () => this.#channel.push(bytes));
  }

  #end(exitCode: number | null, signalCode: string | null): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { time } = this.#wall;
    // The gateway first reads what it has written.
    time.at(time.nowNs + exitMs * 1e6, () => {
      this.#clock.end();
      this.exitCode = exitCode;
      this.signalCode = signalCode;
      this.emit("close");
    });
    this.#isHanging = true;
  }
}
