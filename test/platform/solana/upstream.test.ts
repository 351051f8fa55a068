// Upstream over real sockets, with nodes that answer correctly, incorrectly, late and never.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, it } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import {
  answerBytesMax,
  Upstream,
  type UpstreamOptions,
} from "../../../src/platform/solana/upstream.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { turnsUntil } from "../../support/turns-until.ts";

interface RecordedRequest {
  readonly id: number;
  readonly method: string;
  readonly text: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
}

type Answer = (recorded: RecordedRequest) => void;

class Node {
  readonly requests: RecordedRequest[] = [];
  connections = 0;
  readonly #server: Server;

  private constructor(answer: Answer) {
    this.#server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        const text = Buffer.concat(chunks).toString();
        const { id, method }: { id: number; method: string } = JSON.parse(text);
        const recorded = { id, method, text, request, response };
        this.requests.push(recorded);
        answer(recorded);
      });
    });
    this.#server.on("connection", () => this.connections++);
  }

  static async open(answer: Answer): Promise<Node> {
    const node = new Node(answer);
    await new Promise<void>((resolve) => node.#server.listen(0, "127.0.0.1", resolve));
    return closing(node);
  }

  get port(): number {
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("expected a port");
    return address.port;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

function open(node: Node, options: Partial<UpstreamOptions> = {}): Upstream {
  const rpc = `http://127.0.0.1:${node.port}/path-secret`;
  return closing(Upstream.open({ rpc, clock: systemClock, ...options }));
}

/** A node that answers each call with `result`, which is JSON. */
const answering =
  (result: string): Answer =>
  ({ id, response }) =>
    void response.end(`{"jsonrpc":"2.0","result":${result},"id":${id}}`);

async function failureOf(answer: Answer, clock: Clock = systemClock): Promise<ShredwayError> {
  const upstream = open(await Node.open(answer), { clock });
  const thrown: unknown = await upstream.call("getSlot", []).catch((error: unknown) => error);
  if (!(thrown instanceof ShredwayError))
    throw new Error(`expected a refusal, got ${String(thrown)}`);
  expect(thrown.message).not.toContain("path-secret");
  return thrown;
}

describe("call", () => {
  it("forwards parameters and results to the last digit", async () => {
    const node = await Node.open(answering('{"rentEpoch":18446744073709551615}'));
    const answer = await open(node).call("getAccountInfo", ["key", { n: 2n ** 64n - 1n }]);
    expect(answer).toEqual({ result: { text: '{"rentEpoch":18446744073709551615}' } });
    expect(node.requests[0]?.text).toContain('"params":["key",{"n":18446744073709551615}]');
    expect(node.requests[0]?.request.url).toBe("/path-secret");
  });

  it("reuses connections", async () => {
    const node = await Node.open(answering("1"));
    const upstream = open(node);
    for (let i = 0; i < 50; i++) await upstream.call("getSlot", []);
    // A connection becomes free shortly after its answer was read.
    expect(node.connections).toBeLessThanOrEqual(2);
  });

  it("retries once if a reused connection was closed", async () => {
    let cuts = 1;
    const node = await Node.open((recorded) => {
      if (cuts-- > 0) recorded.response.destroy();
      else answering("1")(recorded);
    });
    expect(await open(node).call("getSlot", [])).toEqual({ result: { text: "1" } });
    expect(node.requests.length).toBe(2);
    const dead = await Node.open(({ response }) => response.destroy());
    await expect(open(dead).call("getSlot", [])).rejects.toThrow("getSlot at 127.0.0.1");
    expect(dead.requests.length).toBe(2);
  });

  it.each<[string, Answer, string]>([
    ["garbage", ({ response }) => void response.end("<html>no</html>"), "expected JSON"],
    ["its own address", ({ response }) => void response.end('"/path-secret"'), "message"],
    ["nothing", ({ response }) => void response.end(), "expected JSON"],
    [
      "another id",
      ({ id, response }) => void response.end(`{"result":1,"id":${id + 1}}`),
      "with id",
    ],
    ["no id", ({ response }) => void response.end('{"result":1}'), "with id"],
    ["neither", ({ id, response }) => void response.end(`{"id":${id}}`), "with id"],
    ["a status", ({ response }) => void response.writeHead(429).end("slow down"), "got 429"],
    [
      "half an answer",
      ({ response }) => {
        response.writeHead(200, { "content-length": 1000 });
        response.write('{"result":1', () => response.destroy());
      },
      "getSlot at",
    ],
  ])("fails with rpc_failed on %s", async (_, answer, text) => {
    const failure = await failureOf(answer);
    expect(failure.reason).toBe("rpc_failed");
    expect(failure.message).toContain(text);
  });

  it("reads an endless answer only to its limit", async () => {
    const chunk = Buffer.alloc(1024 * 1024, "a");
    let written = 0;
    const failure = await failureOf(({ response }) => {
      const write = (): void => {
        do written += chunk.length;
        while (!response.destroyed && response.write(chunk));
      };
      response.on("drain", write);
      response.on("error", () => undefined);
      write();
    });
    expect(failure.message).toContain(`at most ${answerBytesMax} bytes`);
    expect(written).toBeLessThan(4 * answerBytesMax);
  });

  it("limits the time for an answer and in the queue", async () => {
    const clock = new ManualClock();
    const node = await Node.open(() => undefined);
    const upstream = open(node, { clock, connectionsMax: 1, waitingMax: 1 });
    const calls = [upstream.call("getSlot", []), upstream.call("getSlot", [])];
    const ends = Promise.allSettled(calls);
    await turnsUntil(() => node.requests.length === 1);
    await expect(upstream.call("getSlot", [])).rejects.toMatchObject({ reason: "overloaded" });
    await clock.advance(10_000);
    for (const end of await ends) {
      expect(end).toMatchObject({ status: "rejected", reason: { reason: "rpc_failed" } });
    }
    expect(clock.pending).toBe(0);
    expect(node.requests.length).toBe(1);
  });

  it("passes a connection to the next call in the queue", async () => {
    const node = await Node.open(() => undefined);
    const upstream = open(node, { connectionsMax: 2 });
    const calls = Array.from({ length: 5 }, () => upstream.call("getSlot", []));
    for (let i = 0; i < 5; i++) {
      await turnsUntil(() => node.requests.length > i);
      expect(node.requests.length).toBeLessThanOrEqual(i + 2);
      const [recorded] = node.requests.slice(i);
      if (recorded) answering(String(recorded.id))(recorded);
    }
    expect((await Promise.all(calls)).length).toBe(5);
    expect(node.connections).toBeLessThanOrEqual(2);
  });

  it("reports a refused connection without the secrets of its URL", async () => {
    const node = await Node.open(() => undefined);
    const upstream = open(node);
    node.close();
    await expect(upstream.call("getSlot", [])).rejects.toThrow("ECONNREFUSED");
  });

  it("ends all calls when it is closed", async () => {
    const node = await Node.open(() => undefined);
    const upstream = open(node, { connectionsMax: 1 });
    const ends = Promise.allSettled([upstream.call("a", []), upstream.call("b", [])]);
    await turnsUntil(() => node.requests.length === 1);
    await upstream.close();
    for (const { status } of await ends) expect(status).toBe("rejected");
    await expect(upstream.call("c", [])).rejects.toThrow("closed already");
  });
});
