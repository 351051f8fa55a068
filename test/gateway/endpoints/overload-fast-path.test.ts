// Overload while the fast path sends: what it has sent is never refused.
//
// The fast path is the real one, with connections in memory. The test makes its steps and the turns.

import { describe, expect, it } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import { submissionsPerTurn } from "../../../src/gateway/endpoints/submission-queue.ts";
import type { CallerConnection } from "../../../src/gateway/fast-path/caller-connection.ts";
import { FastPath } from "../../../src/gateway/fast-path/fast-path.ts";
import type { HttpResponse } from "../../../src/gateway/http/types.ts";
import { native } from "../../../src/relay/data-plane/native.ts";
import type { NativeSimulatedFastPath } from "../../../src/relay/data-plane/native-fast-path.ts";
import { closing } from "../../support/closing.ts";
import { GatewayRun, tipWallet } from "../../support/gateway/gateway.ts";
import { base64 } from "../../support/transactions/tipping.ts";
import { bodyOf, requestOf, transfer } from "../fast-path/fast-caller.ts";

const [callerDescriptor, partnerDescriptor] = [1, 2];
const foreverNs = 2n ** 62n;

interface WrittenRequest {
  /** Request line and headers, without the empty line. */
  readonly head: Buffer;
  readonly body: Buffer;
  readonly bytes: Buffer;
}

function written(wire: Uint8Array): WrittenRequest {
  const body = bodyOf(wire);
  const text = requestOf("good", body);
  return {
    head: Buffer.from(text.slice(0, text.indexOf("\r\n\r\n"))),
    body: Buffer.from(body),
    bytes: Buffer.from(text),
  };
}

/** A gateway, and a caller whose next request the fast path may send to a partner. */
class FastRun {
  readonly run: GatewayRun;
  readonly fastPath: FastPath;
  readonly #handle: NativeSimulatedFastPath;
  readonly #connection: CallerConnection;
  readonly #turns: (() => void)[];
  readonly #request = written(transfer(2));

  static async open(): Promise<FastRun> {
    const turns: (() => void)[] = [];
    const run = await GatewayRun.open({}, { inNextTurn: (action) => turns.push(action) });
    return new FastRun(run, turns);
  }

  private constructor(run: GatewayRun, turns: (() => void)[]) {
    this.run = run;
    this.#turns = turns;
    this.#handle = new (native().SimulatedFastPath)();
    this.fastPath = closing(new FastPath({ warn: () => {} }, { handle: this.#handle }));
    this.fastPath.setRules({
      tipAddresses: [tipWallet.publicKey.toBytes()],
      dontFrontPrefixes: [],
      minimumTipLamports: 10_000n,
    });
    this.fastPath.allow("k_good", 100);
    for (const descriptor of [callerDescriptor, partnerDescriptor])
      this.#handle.arrive(descriptor, new Uint8Array());
    this.#lendToPartner();
    const connection = this.fastPath.connection(() => callerDescriptor);
    if (!connection) throw new Error("expected an open fast path");
    this.#connection = connection;
    const { head, body } = written(transfer(1));
    connection.learn({ head, body, isBase58: false, keyId: "k_good", untilNs: foreverNs });
    connection.answering(0);
  }

  /** The fast path sends the request, unless it was claimed. */
  sendAhead(): void {
    this.beginLook();
    this.conclude();
  }

  beginLook(): void {
    if (!this.looks()) throw new Error("the fast path did not look at the request");
  }

  /** The request arrives. */
  looks(): boolean {
    this.#handle.arrive(callerDescriptor, this.#request.bytes);
    return this.#handle.look(1n);
  }

  /** The response leaves, and everything was read. */
  answered(): void {
    this.#connection.answering(this.#request.bytes.length);
  }

  conclude(): void {
    this.#handle.conclude(2n);
  }

  /** The gateway reads the request. */
  async read(): Promise<HttpResponse> {
    const { head, body } = this.#request;
    return this.run.gateway.handle({
      method: "POST",
      path: "/relay",
      query: "",
      header: (name) => (name === "api-key" ? "good" : undefined),
      remoteAddress: "127.0.0.1",
      isTls: false,
      body,
      fastPath: { connection: this.#connection, head },
    });
  }

  /** Other submissions take a turn. */
  async fillTurn(): Promise<void> {
    const calls = Array.from({ length: submissionsPerTurn }, (_, i) =>
      this.run.call("sendTransaction", [base64(transfer(i + 10))]),
    );
    await Promise.all(calls);
  }

  /** Other submissions take every place. */
  fillPlaces(): void {
    const { submissionLimit } = this.run.gateway;
    while (!submissionLimit.isFull) void submissionLimit.with(() => new Promise<never>(() => {}));
  }

  turn(): void {
    for (const action of this.#turns.splice(0)) action();
  }

  #lendToPartner(): void {
    const loans = this.fastPath.openRoute();
    if (!loans) throw new Error("expected an open fast path");
    loans.setForm({
      head: "POST / HTTP/1.1\r\nContent-Length: ",
      beforeId: '{"jsonrpc":"2.0","id":',
      beforeText: ',"method":"sendTransaction","params":["',
      afterText: '"]}',
      minimumTipLamports: 0n,
      transactionBytesMax: 1232,
    });
    if (loans.lend(partnerDescriptor, foreverNs) === null) throw new Error("nothing was lent");
  }
}

describe("a transaction that the fast path has sent", () => {
  it.each<[name: string, fill: (one: FastRun) => unknown]>([
    ["is accepted although too many submissions are in progress", (one) => one.fillPlaces()],
    ["does not wait for the next turn", (one) => one.fillTurn()],
  ])("%s", async (_, fill) => {
    const fast = await FastRun.open();
    await fill(fast);
    fast.sendAhead();
    expect((await fast.read()).status).toBe(200);
    expect(fast.run.submitted.at(-1)?.taken).toBeDefined();
  });
});

describe("a connection whose submission was refused", () => {
  it("is not looked at any more, because the next one may be refused for the same reason", async () => {
    const fast = await FastRun.open();
    fast.run.submit = () => Promise.reject(new ShredwayError("store_failed", "database failed"));
    fast.sendAhead();
    expect((await fast.read()).body).toContain("store_failed");
    fast.answered();
    expect(fast.looks()).toBe(false);
  });
});

describe("a transaction that the fast path is still checking", () => {
  it("is not sent after too many submissions were in progress", async () => {
    const fast = await FastRun.open();
    fast.beginLook();
    fast.fillPlaces();
    expect((await fast.read()).status).toBe(429);
    fast.conclude();
    expect(fast.fastPath.snapshot()).toMatchObject({ taken: 0, unclaimed: 0, late: 1 });
  });

  it("is not sent while it waits, so that it uses no connection to a partner", async () => {
    const fast = await FastRun.open();
    await fast.fillTurn();
    fast.beginLook();
    const response = fast.read();
    fast.conclude();
    expect(fast.fastPath.snapshot()).toMatchObject({ taken: 0, unclaimed: 0, late: 1 });
    fast.turn();
    expect((await response).status).toBe(200);
    expect(fast.run.submitted.at(-1)?.taken).toBeUndefined();
  });
});
