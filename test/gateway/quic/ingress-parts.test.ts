// The pure parts of the ingress: packet headers, messages, response frames, limits, resets, streams.

import { randomBytes } from "node:crypto";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { QuicheConnection } from "../../../src/core/quic/quiche.ts";
import { responseFrame } from "../../../src/core/quic/response-frame.ts";
import { HandshakeLimits } from "../../../src/gateway/quic/handshake-limits.ts";
import {
  answerBytesMax,
  decodeAnswer,
  decodeRequest,
  encodeAnswer,
  encodeRequest,
  requestBytesMax,
} from "../../../src/gateway/quic/ingress-messages.ts";
import { readLongHeader } from "../../../src/gateway/quic/long-header.ts";
import { StatelessResets } from "../../../src/gateway/quic/stateless-reset.ts";
import { StreamAssembler } from "../../../src/gateway/quic/stream-assembler.ts";
import type { IngressProcessAnswer, IngressRequest } from "../../../src/gateway/quic/types.ts";
import { FrameReader } from "../../../src/gateway/tpu/frames.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { needQuiche } from "../../support/quic/quic-client.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { readResponse } from "../../support/quic/response-frames.ts";

const bytes = (max: number) => fc.uint8Array({ maxLength: max });

describeQuic("readLongHeader", () => {
  it("reads what quiche reads", () => {
    const { Header, Type } = needQuiche();
    const lengths = fc.tuple(bytes(20), bytes(20), bytes(200), fc.integer({ min: 0, max: 3 }));
    fc.assert(
      fc.property(lengths, ([dcid, scid, token, type]) => {
        const packet = Buffer.concat([
          Uint8Array.of(0xc0 | (type << 4), 0, 0, 0, 1, dcid.length),
          dcid,
          Uint8Array.of(scid.length),
          scid,
          ...(type === 0 ? [Uint8Array.of(0x40 | (token.length >> 8), token.length), token] : []),
          Buffer.alloc(60),
        ]);
        const header = readLongHeader(packet);
        expect(header?.isInitial).toBe(type === 0);
        if (type === 3) return; // a retry has another end
        const known = Header.fromSlice(packet, 8);
        expect(known.ty === Type.Initial).toBe(header?.isInitial);
        expect(Buffer.from(known.dcid)).toEqual(Buffer.from(header?.dcid ?? []));
        expect(Buffer.from(known.scid)).toEqual(Buffer.from(header?.scid ?? []));
        expect(Buffer.from(known.token ?? [])).toEqual(Buffer.from(header?.token ?? []));
      }),
    );
  });

  it("rejects longer ids than version 1 permits, which other versions may have", () => {
    const packetOf = (version: number, length: number) =>
      Buffer.concat([
        Uint8Array.of(0xc0, 0, 0, 0, version, length),
        Buffer.alloc(length, 1),
        Uint8Array.of(length),
        Buffer.alloc(length, 2),
        Buffer.alloc(60),
      ]);
    expect(readLongHeader(packetOf(1, 20))?.scid).toEqual(Buffer.alloc(20, 2));
    expect(readLongHeader(packetOf(1, 21))).toBe(null);
    expect(readLongHeader(packetOf(9, 255))?.scid).toEqual(Buffer.alloc(255, 2));
  });

  it("never throws", () => {
    fc.assert(
      fc.property(bytes(100), (packet) => {
        if (packet[0] !== undefined) packet[0] |= 0x80;
        const header = readLongHeader(packet);
        if (header) expect(header.dcid.length + header.scid.length).toBeLessThan(packet.length);
      }),
      { numRuns: 2000 },
    );
  });
});

describe("messages", () => {
  const answers: IngressProcessAnswer[] = [
    { kind: "opened", unconfined: "seccomp" },
    { kind: "pong" },
    { kind: "refused", message: "no" },
    { kind: "trouble", message: "lost" },
    { kind: "listening", addresses: ["127.0.0.1:1", "[::1]:2"] },
    {
      kind: "connected",
      connection: {
        id: 7,
        listener: 1,
        protocol: "shredway-tpu",
        host: "::1",
        commonName: null,
        ed25519Key: new Uint8Array(32).fill(3),
        protection: "invalid",
      },
    },
    {
      kind: "streams",
      streams: [
        { connection: 1, stream: 2, receivedNs: 3n, sequence: 0, bytes: Buffer.from("one") },
        {
          connection: 2 ** 40,
          stream: 2 ** 50,
          receivedNs: 2n ** 60n,
          sequence: 2 ** 53 - 1,
          bytes: Buffer.alloc(16_392),
        },
      ],
    },
    { kind: "ended", connection: 7, end: "idle_timeout" },
    {
      kind: "counts",
      counts: {
        packets: 1,
        unknownPackets: 2,
        limitedPackets: 8,
        retries: 3,
        invalidTokens: 4,
        limitedHandshakes: 5,
        failedHandshakes: 6,
        handshakes: 7,
        drops: { empty: 1, reset: 2, timed_out: 3, too_long: 4, memory_limit: 5 },
      },
      connectionDrops: [[7, 15]],
    },
  ];

  it("arrive as they were sent, in any pieces", () => {
    const requests: IngressRequest[] = [
      { kind: "answers", answers: [{ connection: 1, stream: 4, status: 429, body: "später" }] },
      { kind: "admit", connection: 3 },
      { kind: "offer", connection: 3 },
      { kind: "dismiss", connection: 3, code: 1, reason: "unauthorized" },
      { kind: "ping" },
    ];
    const got: unknown[] = [];
    const ofAnswers = new FrameReader(answerBytesMax, (kind, body) =>
      got.push(decodeAnswer(kind, Buffer.from(body))),
    );
    const all = Buffer.concat(answers.map(encodeAnswer));
    for (let at = 0; at < all.length; at += 7) ofAnswers.push(all.subarray(at, at + 7));
    const ofRequests = new FrameReader(requestBytesMax, (kind, body) =>
      got.push(decodeRequest(kind, body)),
    );
    ofRequests.push(Buffer.concat(requests.map(encodeRequest)));
    expect(got).toEqual([...answers, ...requests]);
  });

  it("of a hostile process are refused by an error and nothing else", () => {
    const isExpected = (error: unknown) =>
      error instanceof RangeError || error instanceof SyntaxError;
    const decode = (kind: number, body: Buffer): void => {
      try {
        decodeAnswer(kind, body);
      } catch (error) {
        if (!isExpected(error)) throw error;
      }
    };
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 20 }), bytes(100), (kind, body) =>
        decode(kind, Buffer.from(body)),
      ),
      { numRuns: 2000 },
    );
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 20 }), fc.json(), (kind, text) =>
        decode(kind, Buffer.from(text)),
      ),
    );
    for (const text of ["null", "{}", '{"addresses":[1]}', '{"id":-1}', '{"connection":"1"}']) {
      for (const kind of [2, 4, 5, 7, 8]) {
        expect(() => decodeAnswer(kind, Buffer.from(text)), text).toThrow(/^expected /);
      }
    }
  });
});

describe("responseFrame", () => {
  it("has the layout of Lunar Lander", () => {
    expect(responseFrame(200, "abc").toString("hex")).toBe("010000c80003616263");
  });

  it("cuts a long body between two characters", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme", maxLength: 1500 }), (text) => {
        const { status, body } = readResponse(responseFrame(400, text));
        expect(status).toBe(400);
        expect(Buffer.byteLength(body)).toBeLessThanOrEqual(1024);
        expect(Buffer.from(text).toString().startsWith(body)).toBe(true);
      }),
    );
  });
});

describe("HandshakeLimits", () => {
  it("counts proven addresses by minute, and an IPv6 /64 as one", async () => {
    const clock = new ManualClock();
    const limits = new HandshakeLimits(clock, 2);
    expect(limits.allowsProven(0, "2001:db8::1")).toBe(true);
    expect(limits.allowsProven(0, "2001:db8::2")).toBe(true);
    expect(limits.allowsProven(0, "2001:db8::3")).toBe(false);
    expect(limits.allowsUnproven(0, "2001:db8::4")).toBe(false);
    expect(limits.allowsProven(0, "2001:db8:0:1::1")).toBe(true);
    expect(limits.allowsProven(0, "192.0.2.1")).toBe(true);
    await clock.advance(60_000);
    expect(limits.allowsProven(0, "2001:db8::3")).toBe(true);
  });

  it("accepts others without a token, however often an exhausted address asks", () => {
    const limits = new HandshakeLimits(new ManualClock(), 1);
    expect(limits.allowsProven(0, "192.0.2.1")).toBe(true);
    for (let i = 0; i < 200; i++) expect(limits.allowsUnproven(0, "192.0.2.1")).toBe(false);
    expect(limits.allowsUnproven(0, "192.0.2.2")).toBe(true);
  });

  it("never counts a sender that may be forged", () => {
    const limits = new HandshakeLimits(new ManualClock(), 1);
    for (let i = 0; i < 50; i++) expect(limits.allowsUnproven(0, "192.0.2.1")).toBe(true);
    expect(limits.allowsProven(0, "192.0.2.1")).toBe(true);
  });

  it("requires tokens from 64 handshakes in progress or 100 in a second on", async () => {
    const clock = new ManualClock();
    const limits = new HandshakeLimits(clock, 1000);
    expect(limits.allowsUnproven(64, "192.0.2.1")).toBe(false);
    for (let i = 0; i < 100; i++) expect(limits.allowsUnproven(0, "192.0.2.1")).toBe(true);
    expect(limits.allowsUnproven(0, "192.0.2.1")).toBe(false);
    await clock.advance(1000);
    expect(limits.allowsUnproven(0, "192.0.2.1")).toBe(true);
    expect(limits.allowsProven(1024, "192.0.2.1")).toBe(false);
  });
});

describe("StatelessResets", () => {
  it("have a token for each connection id and key, and are shorter than the packet", () => {
    const [one, other] = [new StatelessResets("one"), new StatelessResets("other")];
    const id = randomBytes(8);
    expect(one.tokenOf(id)).toEqual(new StatelessResets("one").tokenOf(id));
    expect(one.tokenOf(id)).not.toEqual(other.tokenOf(id));
    expect(one.packetFor(id, 21)).toBe(null);
    for (let length = 22; length < 100; length++) {
      const packet = one.packetFor(id, length);
      expect(packet?.length).toBeLessThan(length);
      expect((packet?.[0] ?? 0) >> 6).toBe(1);
      expect(packet?.subarray(-16)).toEqual(one.tokenOf(id));
    }
    expect(one.tokenNumberOf(id).toString(16).padStart(32, "0")).toBe(
      one.tokenOf(id).toString("hex"),
    );
  });
});

/** Streams as quiche gives them: each piece once, the last one with the end. */
class PlannedStreams {
  readonly #pieces = new Map<number, [Uint8Array, boolean][]>();
  /** How often the list of readable streams was asked for. */
  lists = 0;

  add(id: number, piece: Uint8Array, isEnd: boolean): void {
    this.#pieces.set(id, [...(this.#pieces.get(id) ?? []), [piece, isEnd]]);
  }

  get quic(): QuicheConnection {
    const part: Pick<
      QuicheConnection,
      "isReadable" | "streamReadable" | "readable" | "streamRecv"
    > = {
      isReadable: () => this.#pieces.size > 0,
      streamReadable: (id) => this.#pieces.has(id),
      readable: () => {
        this.lists++;
        return [...this.#pieces.keys()];
      },
      streamRecv: (id, buffer) => {
        const [next, ...rest] = this.#pieces.get(id) ?? [];
        if (rest.length > 0) this.#pieces.set(id, rest);
        else this.#pieces.delete(id);
        if (!next) return null;
        buffer.set(next[0]);
        return [next[0].length, next[1]];
      },
    };
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- reading uses only these
    return part as QuicheConnection;
  }
}

const unlimited = () => ({ max: Number.MAX_SAFE_INTEGER, connectionMin: 0, total: 0 });

describe("StreamAssembler", () => {
  it("gives each connection its share, however much the others hold", () => {
    const held = { max: 6000, connectionMin: 2048, total: 0 };
    const dropped: string[] = [];
    const [greedy, modest] = [1, 2].map((connection) => {
      const sink = {
        completed: () => undefined,
        dropped: (id: number, reason: string) => dropped.push(`${connection}: ${reason} ${id}`),
      };
      return new StreamAssembler({ streamBytesMax: 4096, timeoutNs: 1n, held }, sink);
    });
    const begin = (assembler: StreamAssembler | undefined, id: number): void => {
      const planned = new PlannedStreams();
      planned.add(id, Buffer.from("a"), false);
      assembler?.read(planned.quic, 0n, () => true);
    };
    for (const id of [0, 4, 8, 12]) begin(greedy, id);
    begin(modest, 0);
    expect(dropped).toEqual(["1: memory_limit 8", "1: memory_limit 12"]);
    begin(modest, 4);
    expect(dropped.at(-1)).toBe("2: memory_limit 4");
    greedy?.close();
    begin(modest, 8);
    modest?.close();
    expect(dropped.length).toBe(3);
    expect(held.total).toBe(0);
  });

  it("returns the bytes of streams in any pieces and order, within the limit", () => {
    const stream = fc.record({ parts: fc.array(bytes(40), { minLength: 1, maxLength: 8 }) });
    fc.assert(
      fc.property(
        fc.array(stream, { maxLength: 6 }),
        fc.infiniteStream(fc.nat(5)),
        (streams, order) => {
          const completed = new Map<number, string>();
          const dropped = new Map<number, string>();
          const assembler = new StreamAssembler(
            { streamBytesMax: 100, timeoutNs: 1000n, held: unlimited() },
            {
              completed: (id, content) => completed.set(id, Buffer.from(content).toString("hex")),
              dropped: (id, reason) => dropped.set(id, reason),
            },
          );
          const left = streams.map(({ parts }) => [...parts]);
          while (left.some((parts) => parts.length > 0)) {
            const index = (order.next().value ?? 0) % streams.length;
            const parts = left[index] ?? [];
            const part = parts.shift();
            if (!part) continue;
            const planned = new PlannedStreams();
            planned.add(index, part, parts.length === 0);
            assembler.read(planned.quic, 0n, () => true);
          }
          for (const [index, { parts }] of streams.entries()) {
            const whole = Buffer.concat(parts);
            if (whole.length === 0) expect(dropped.get(index)).toBe("empty");
            else if (whole.length > 100) expect(dropped.get(index)).toBe("too_long");
            else expect(completed.get(index)).toBe(whole.toString("hex"));
          }
        },
      ),
    );
  });

  it("asks for the list of readable streams only if it expects none of them", () => {
    const completed: number[] = [];
    const assembler = new StreamAssembler(
      { streamBytesMax: 100, timeoutNs: 1000n, held: unlimited() },
      { completed: (id) => completed.push(id), dropped: () => undefined },
    );
    const planned = new PlannedStreams();
    const read = (...ids: number[]): void => {
      for (const id of ids) planned.add(id, Buffer.from("a"), true);
      assembler.read(planned.quic, 0n, () => true);
    };
    read(0, 4, 2, 8, 6);
    planned.add(12, Buffer.from("a"), false);
    read();
    read(12, 10);
    expect(completed.toSorted((a, b) => a - b)).toEqual([0, 2, 4, 6, 8, 10, 12]);
    expect(planned.lists).toBe(0);
    read(24, 20); // 16 is late
    expect(planned.lists).toBe(1);
    read(16, 28);
    expect(planned.lists).toBe(2);
    read(32);
    expect(planned.lists).toBe(2);
    expect(new Set(completed)).toEqual(new Set([0, 2, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32]));
  });

  it("reads no more streams than are allowed", () => {
    for (const ids of [
      [0, 4, 8],
      [40, 80, 120],
    ]) {
      const completed: number[] = [];
      const assembler = new StreamAssembler(
        { streamBytesMax: 100, timeoutNs: 1000n, held: unlimited() },
        { completed: (id) => completed.push(id), dropped: () => undefined },
      );
      const planned = new PlannedStreams();
      for (const id of ids) planned.add(id, Buffer.from("a"), true);
      assembler.read(planned.quic, 0n, () => completed.length < 2);
      expect(completed).toEqual(ids.slice(0, 2));
      assembler.read(planned.quic, 0n, () => true);
      expect(completed).toEqual(ids);
    }
  });

  it("drops a stream once when its time is over, and ignores the rest", () => {
    const events: string[] = [];
    const assembler = new StreamAssembler(
      { streamBytesMax: 100, timeoutNs: 1000n, held: unlimited() },
      {
        completed: (id) => events.push(`completed ${id}`),
        dropped: (id, reason) => events.push(`${reason} ${id}`),
      },
    );
    const planned = new PlannedStreams();
    planned.add(2, Buffer.from("a"), false);
    assembler.read(planned.quic, 5n, () => true);
    expect(assembler.oldestNs).toBe(5n);
    assembler.expire(1004n);
    expect(events).toEqual([]);
    assembler.expire(1005n);
    assembler.expire(1006n);
    expect(assembler.oldestNs).toBe(undefined);
    planned.add(2, Buffer.from("b"), true);
    assembler.read(planned.quic, 1007n, () => true);
    expect(events).toEqual(["timed_out 2"]);
  });
});
