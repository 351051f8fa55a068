// A gateway for sendIdeal: the native inspector, the native co-signing check, a nonce controlled by
// the test, and pairs with it.

import { base58 } from "@scure/base";
import { expect } from "vitest";
import { ShredwayError } from "../../../src/core/errors.ts";
import type { GatewaySettings } from "../../../src/gateway/methods/dependencies.ts";
import type { NonceInfo, NonceOwner, Nonces } from "../../../src/gateway/nonces/types.ts";
import { NativeCoSigningCheck } from "../../../src/gateway/transactions/co-signing.ts";
import { TransactionInspector } from "../../../src/gateway/transactions/transaction-checks.ts";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { parseTransaction } from "../../../src/sandbox/chain/wire.ts";
import { GatewayRun, tipAddress, tipWallet } from "../gateway/gateway.ts";
import {
  advance,
  authority,
  bob,
  built,
  type Choices,
  lifetime,
  nonceAccount,
  payer,
  paying,
  price,
  transfer,
  type Words,
} from "./nonce-transactions.ts";
import { base64 } from "./tipping.ts";

export const inspector = new TransactionInspector({
  tipAddresses: [tipWallet.publicKey.toBytes()],
  dontFrontPrefixes: [],
});
const tipAccount = { address: tipAddress, writable: true };
export const otherLifetime = encodeBase58(new Uint8Array(32).fill(8));

/** Returns the test's nonce values; co-signs by the real check. */
export class NonceHarness implements Nonces {
  owner: NonceOwner | null = null;
  info: NonceInfo = {
    nonce: lifetime,
    nonceAccount: nonceAccount.address,
    nonceAuthority: authority.address,
  };
  failure: Error | undefined;
  /** Creates invalid co-signatures. */
  signsWrongly = false;
  readonly requests: string[] = [];
  coSigned = 0;
  readonly #check = new NativeCoSigningCheck();

  managed(): Promise<NonceInfo> {
    return Promise.reject(new Error("not expected in this test"));
  }

  of(account: string): Promise<NonceInfo> {
    this.requests.push(account);
    return this.failure ? Promise.reject(this.failure) : Promise.resolve(this.info);
  }

  ownerOf(account: string): NonceOwner | null {
    return account === nonceAccount.address ? this.owner : null;
  }

  coSign(account: string, wire: Uint8Array): Promise<Uint8Array> {
    try {
      const copy = Uint8Array.from(wire);
      const place = this.#check.place(copy, base58.decode(account), authority.publicKey);
      const message = copy.subarray(place.messageBegin, place.messageEnd);
      copy.set((this.signsWrongly ? bob : authority).sign(message), place.signatureAt);
      this.coSigned++;
      return Promise.resolve(copy);
    } catch (thrown) {
      return Promise.reject(thrown instanceof Error ? thrown : new Error("no error"));
    }
  }
}

export const own: NonceOwner = { accountId: "a_1", keyId: "k_good" };

export async function openPairs(
  owner: NonceOwner | null = null,
  settings: Partial<GatewaySettings> = {},
): Promise<{ run: GatewayRun; nonces: NonceHarness }> {
  const nonces = new NonceHarness();
  nonces.owner = owner;
  return { run: await GatewayRun.open(settings, { inspector, nonces: nonces }), nonces };
}

export interface One extends Choices {
  readonly first?: Words;
  readonly price?: bigint;
  readonly tip?: bigint;
  readonly others?: readonly Words[];
}

export function one({
  first = advance(),
  price: wantedPrice = 100n,
  tip = 10_000n,
  ...rest
}: One = {}) {
  const { others = [], ...choices } = rest;
  const words = [first];
  if (wantedPrice > 0n) words.push(price(wantedPrice));
  if (tip > 0n) words.push(transfer(paying(payer), tipAccount, tip));
  return built([...words, ...others], { missing: [], ...choices });
}

/**
 * Like the specification's examples: a high price with the minimum tip, and a high tip with a low
 * price.
 */
export function pairOf(choices: One = {}): [Uint8Array, Uint8Array] {
  return [one({ price: 5_000_000n, ...choices }), one({ tip: 1_000_000n, ...choices })];
}

export function paramsOf(pair: readonly Uint8Array[], config?: object): unknown[] {
  return [pair.map(base64), ...(config ? [config] : [])];
}

export function signatureOf(wire: Uint8Array): string {
  return encodeBase58(parseTransaction(wire).signatures[0] ?? new Uint8Array(0));
}

export function refusal(
  code: number,
  message: string | RegExp,
  reason: string,
  details = {},
): object {
  return {
    status: 200,
    body: {
      jsonrpc: "2.0",
      id: 1,
      error: {
        code,
        message: expect.stringMatching(message),
        data: expect.objectContaining({ reason, ...details }),
      },
    },
  };
}

export function rpcFailed(): ShredwayError {
  return new ShredwayError("rpc_failed", "expected a response of the node, got none");
}

export const inCoSigning = { missing: [authority] };
