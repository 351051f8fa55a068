// A simulated leader: the QUIC server of a validator, which may refuse, stop streams, be silent or restart.

import { type Frame, hasStream, isAckEliciting, type Packet, type StreamFrame } from "./packets.ts";

export const leaderMoods = [
  "silent",
  "refuses",
  "allows no stream",
  "allows one stream",
  "stops streams",
  "takes nothing",
  "closes",
  "restarts",
] as const;
export type LeaderMood = (typeof leaderMoods)[number] | "accepts";

/** Application codes of validators' servers. */
const droppedCode = 1;
const disallowedCode = 2;
const streamsAtOnce = 8;

interface LeaderOptions {
  /** Sends a packet on a connection of the gateway. */
  readonly reply: (connection: string, packet: Packet) => void;
  /** It has every byte of a transaction. `isTaken`: it may put it into its block. */
  readonly onTransaction: (bytes: Buffer, isTaken: boolean) => void;
}

interface ReceivedStream {
  readonly pieces: Map<number, StreamFrame>;
  isStopped: boolean;
}

interface ServerConnection {
  readonly streams: Map<number, ReceivedStream>;
  /** Ids of streams that ended. */
  readonly ended: Set<number>;
  readonly received: Set<number>;
  nextNumber: number;
}

/** The bytes of a stream; null: some are missing. */
function wholeOf({ pieces }: ReceivedStream): Buffer | null {
  const parts: Buffer[] = [];
  let at = 0;
  for (;;) {
    const piece = pieces.get(at);
    if (!piece) return null;
    parts.push(piece.bytes);
    at += piece.bytes.length;
    if (piece.isLast) return Buffer.concat(parts);
  }
}

export class SimulatedLeader {
  readonly #options: LeaderOptions;
  readonly #connections = new Map<string, ServerConnection>();
  #mood: LeaderMood = "accepts";

  constructor(options: LeaderOptions) {
    this.#options = options;
  }

  get mood(): LeaderMood {
    return this.#mood;
  }

  set mood(mood: LeaderMood) {
    this.#mood = mood;
    if (mood === "closes")
      for (const [id, connection] of this.#connections)
        this.#send(id, connection, [{ kind: "close", isApp: true, code: droppedCode }]);
    if (mood === "closes" || mood === "restarts") this.#connections.clear();
    // Streams are allowed again without being asked.
    if (mood === "accepts")
      for (const [id, connection] of this.#connections)
        this.#send(id, connection, [this.#streamsOf(connection)]);
  }

  receive(id: string, { number, frames }: Packet): void {
    if (this.#mood === "silent") return;
    const connection = this.#connections.get(id) ?? this.#begin(id, frames);
    if (!connection) return;
    const answers: Frame[] = [];
    if (!connection.received.has(number)) {
      connection.received.add(number);
      for (const frame of frames) answers.push(...this.#answersTo(connection, frame));
    } else if (hasStream(frames)) answers.push(...this.#stopsIn(connection, frames));
    if (frames.some(({ kind }) => kind === "hello")) answers.push({ kind: "welcome" });
    if (frames.some(({ kind }) => kind === "close")) this.#connections.delete(id);
    if (!isAckEliciting(frames)) return;
    const ack: Frame = { kind: "ack", packets: [number] };
    this.#send(id, connection, [ack, this.#streamsOf(connection), ...answers]);
  }

  #begin(id: string, frames: readonly Frame[]): ServerConnection | null {
    if (!frames.some(({ kind }) => kind === "hello")) return null;
    const connection = {
      streams: new Map(),
      ended: new Set<number>(),
      received: new Set<number>(),
      nextNumber: 0,
    };
    if (this.#mood === "refuses") {
      this.#send(id, connection, [{ kind: "close", isApp: true, code: disallowedCode }]);
      return null;
    }
    this.#connections.set(id, connection);
    return connection;
  }

  #streamsOf({ ended }: ServerConnection): Frame {
    const atOnce: Partial<Record<LeaderMood, number>> = {
      "allows no stream": 0,
      "allows one stream": 1,
    };
    return { kind: "streams", most: ended.size + (atOnce[this.#mood] ?? streamsAtOnce) };
  }

  #answersTo(connection: ServerConnection, frame: Frame): Frame[] {
    if (frame.kind === "reset") connection.ended.add(frame.id);
    if (frame.kind !== "stream" || connection.ended.has(frame.id)) return [];
    const stream = connection.streams.get(frame.id) ?? { pieces: new Map(), isStopped: false };
    connection.streams.set(frame.id, stream);
    if (this.#mood === "stops streams") stream.isStopped = true;
    stream.pieces.set(frame.offset, frame);
    const whole = wholeOf(stream);
    if (whole) {
      if (!stream.isStopped) connection.ended.add(frame.id);
      const isTaken = !stream.isStopped && this.#mood !== "takes nothing";
      this.#options.onTransaction(whole, isTaken);
    }
    return stream.isStopped ? [{ kind: "stop", id: frame.id }] : [];
  }

  /** The gateway repeats what belongs to stopped streams, because it has not learnt of the stop. */
  #stopsIn({ streams }: ServerConnection, frames: readonly Frame[]): Frame[] {
    return frames.flatMap((frame): Frame[] =>
      frame.kind === "stream" && streams.get(frame.id)?.isStopped === true
        ? [{ kind: "stop", id: frame.id }]
        : [],
    );
  }

  #send(id: string, connection: ServerConnection, frames: readonly Frame[]): void {
    this.#options.reply(id, { number: connection.nextNumber++, frames });
  }
}
