// A customer of the sandbox over QUIC: new transactions with a tip, their responses, and their final states.

import { expect } from "vitest";
import { parsePubkey, pubkeyBytes } from "../../../src/core/primitives.ts";
import { newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import {
  buildTransaction,
  transferInstruction,
} from "../../../src/core/transactions/build-legacy.ts";
import { isObject } from "../../../src/core/values.ts";
import { RpcClient } from "../../../src/platform/solana/rpc-client.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { sandboxPace } from "../../../src/sandbox/plan.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { QuicClient, type QuicClientOptions } from "./quic-client.ts";
import { type Response, readResponse } from "./response-frames.ts";

/** The sandbox's wallet with SOL. */
const wallet = SandboxKeyPair.named(sandboxPace.seed, "customer");
const statusesPerCall = 256;
const finalKinds = ["landed", "landed_failed", "expired", "superseded", "rejected"];

let lamports = 20_000n;

/** A new transaction of the sandbox's wallet, which lands. */
export function newTransaction({ chain, partners }: Sandbox): Uint8Array {
  const { blockhash } = chain.latestBlockhash("confirmed");
  const tipAddress = pubkeyBytes(parsePubkey(partners.tipAddresses[0] ?? ""));
  const instruction = transferInstruction(wallet.publicKey, tipAddress, lamports++);
  return buildTransaction([wallet], [instruction], pubkeyBytes(parsePubkey(blockhash)));
}

export function sandboxKey({ gatewayUrl }: Sandbox): string {
  return new URL(gatewayUrl).searchParams.get("api-key") ?? "";
}

export class SandboxCustomer {
  readonly client: QuicClient;
  /** Acknowledged signatures. */
  readonly acknowledged = new Set<string>();
  /** Responses with another status than 200. */
  readonly refused: Response[] = [];
  readonly #sandbox: Sandbox;

  /**
   * Settles when the connection is established or has ended. `address` and `key`: default: those of the
   * sandbox.
   */
  static async connect(
    sandbox: Sandbox,
    {
      address = sandbox.quicAddresses[0] ?? "",
      key = sandboxKey(sandbox),
      ...options
    }: QuicClientOptions & { readonly address?: string; readonly key?: string } = {},
  ): Promise<SandboxCustomer> {
    const client = await QuicClient.open(address, {
      credentials: newEcdsaCredentials(key),
      protocol: "shredway-tpu",
      idleTimeoutMs: 60_000, // the machine may be busy
      ...options,
    });
    await Promise.race([client.established, client.ended]);
    return new SandboxCustomer(sandbox, client);
  }

  private constructor(sandbox: Sandbox, client: QuicClient) {
    this.#sandbox = sandbox;
    this.client = client;
  }

  /** Submits one transaction and records the response. */
  async submit(): Promise<void> {
    const wire = newTransaction(this.#sandbox);
    const response = readResponse(await this.client.request(wire));
    if (response.status === 200) this.acknowledged.add(response.body);
    else this.refused.push(response);
  }

  /** Submits one after the other until the promise settles. */
  async submitDuring(attack: Promise<unknown>): Promise<void> {
    const over = new AbortController();
    const attacked = attack.finally(() => over.abort());
    while (!over.signal.aborted) await this.submit();
    await attacked;
  }
}

interface StatusWithEvents {
  readonly state: string;
  readonly events: readonly { readonly kind: string }[];
}

function statusOf(value: unknown): StatusWithEvents {
  if (!isObject(value)) return { state: "unknown", events: [] };
  const { state, events } = value;
  return { state: String(state), events: Array.isArray(events) ? events : [] };
}

async function statusesOf(node: RpcClient, signatures: readonly string[]) {
  const all: StatusWithEvents[] = [];
  for (let i = 0; i < signatures.length; i += statusesPerCall) {
    const part = signatures.slice(i, i + statusesPerCall);
    const answer = await node.call("getTransactionStatus", [part], 1 << 24);
    all.push(...(Array.isArray(answer) ? answer.map(statusOf) : []));
  }
  return all;
}

/** Waits for the ends of all signatures. Each must be known, landed, and ended exactly once. */
export async function expectEachLandedOnce(
  gatewayUrl: string,
  acknowledged: ReadonlySet<string>,
): Promise<void> {
  const node = new RpcClient(gatewayUrl, 60_000);
  const signatures = [...acknowledged];
  const statesNow = async () => {
    const statuses = await statusesOf(node, signatures);
    return [...new Set(statuses.map(({ state }) => state))].toSorted();
  };
  await expect.poll(statesNow, { timeout: 110_000, interval: 250 }).toEqual(["landed"]);
  for (const { events } of await statusesOf(node, signatures)) {
    const ends = events.map(({ kind }) => kind).filter((kind) => finalKinds.includes(kind));
    expect(ends).toEqual(["landed"]);
  }
}
