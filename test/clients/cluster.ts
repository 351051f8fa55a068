// A cluster for client tests: the real chain on the system's clock, the real endpoint on loopback.

import { systemClock, type Timer } from "../../src/core/clock.ts";
import { SandboxChain } from "../../src/sandbox/chain/chain.ts";
import type { ChainOptions } from "../../src/sandbox/chain/options.ts";
import { RpcEndpoint, type RpcEndpointOptions } from "../../src/sandbox/rpc/endpoint.ts";

export interface RpcAnswer {
  readonly jsonrpc?: string;
  readonly id?: unknown;
  readonly result?: unknown;
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
}

/** Something with a URL of HTTP. */
export interface TestService {
  readonly url: string;
}

export class Cluster implements TestService {
  readonly chain: SandboxChain;
  readonly endpoint: RpcEndpoint;
  readonly #timer: Timer;

  private constructor(chain: SandboxChain, endpoint: RpcEndpoint) {
    this.chain = chain;
    this.endpoint = endpoint;
    this.#timer = systemClock.every(5, () => chain.advanceTo(systemClock.monotonicNs()));
  }

  /** Slots of 100 ms, rooted a few slots later; votes and traffic off unless `options` say so. */
  static async open(
    options: ChainOptions = {},
    rpc: Partial<RpcEndpointOptions> = {},
  ): Promise<Cluster> {
    const chain = await SandboxChain.open({
      slotMs: 100,
      intervalsPerSlot: 4,
      catchUpSlotsMax: 2, // a machine that is too slow for a while gets slower slots
      rootedDepth: 3,
      background: false,
      votes: false,
      ...options,
    });
    chain.advanceTo(systemClock.monotonicNs());
    const endpoint = await RpcEndpoint.open(chain, systemClock, {
      listen: "127.0.0.1:0",
      ...rpc,
    });
    return new Cluster(chain, endpoint);
  }

  get url(): string {
    return `http://${this.endpoint.address}`;
  }

  get webSocketUrl(): string {
    return `ws://${this.endpoint.webSocketAddress}`;
  }

  close(): void {
    this.#timer.cancel();
    this.endpoint.close();
  }
}

export function isRpcAnswer(value: unknown): value is RpcAnswer {
  return typeof value === "object" && value !== null && "jsonrpc" in value && "id" in value;
}

/** Sends `body` unchanged, for requests that no library sends. */
export function post(
  testService: TestService,
  body: string | Uint8Array<ArrayBuffer>,
  contentType = "application/json",
) {
  return fetch(testService.url, { method: "POST", headers: { "content-type": contentType }, body });
}

export async function call(
  testService: TestService,
  method: string,
  params: readonly unknown[] = [],
): Promise<RpcAnswer> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await post(testService, body);
  const value: unknown = await answer.json();
  if (isRpcAnswer(value)) return value;
  throw new Error(`expected a JSON-RPC response, got ${JSON.stringify(value)}`);
}

/** A promise and the function that settles it, for callbacks of clients. */
export function deferred<T>(): {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
} {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
