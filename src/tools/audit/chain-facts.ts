// Facts of the chain about a registered tip, by getTransaction of a Solana node.
//
// Reads the answer by itself, so that the audit does not repeat a mistake of the service: transfers to the
// tip addresses from the instructions, their gain from the balances.

import { decodeBase58 } from "../../core/base58.ts";
import { quote, ShredwayError } from "../../core/errors.ts";
import { isObject } from "../../core/values.ts";
import type { RpcClient } from "../../platform/solana/rpc-client.ts";

export interface ChainFact {
  readonly slot: bigint;
  readonly hasFailed: boolean;
  /** Sum of the transfers to tip addresses, from other addresses, by instructions of the transaction. */
  readonly transferLamports: bigint;
  /** Change of the balances of the tip addresses that the transaction names. */
  readonly gainLamports: bigint;
}

const systemProgram = "11111111111111111111111111111111";
/** Index of the recipient among the accounts, by the number of the System instruction. */
const recipientIndex: Readonly<Record<number, number>> = { 2: 1, 11: 2 };
const answerBytesMax = 2 * 1024 * 1024;
const options = {
  encoding: "json",
  commitment: "confirmed",
  maxSupportedTransactionVersion: 1,
} as const;

export class Chain {
  readonly #rpc: Pick<RpcClient, "call">;
  readonly #addresses: ReadonlySet<string>;

  constructor(rpc: Pick<RpcClient, "call">, addresses: ReadonlySet<string>) {
    this.#rpc = rpc;
    this.#addresses = addresses;
  }

  /** The first slot of the node's history. Throws ShredwayError "rpc_failed". */
  async firstSlot(): Promise<bigint> {
    const slot = await this.#rpc.call("getFirstAvailableBlock");
    if (typeof slot === "number" && Number.isSafeInteger(slot)) return BigInt(slot);
    throw unreadable(`expected a slot of getFirstAvailableBlock, got ${quote(slot)}`);
  }

  /** Null: the node does not know it. Throws ShredwayError "rpc_failed". */
  async fact(signature: string): Promise<ChainFact | null> {
    const answer = await this.#rpc.call("getTransaction", [signature, options], answerBytesMax);
    if (answer === null) return null;
    const { slot, meta, transaction } = isObject(answer) ? answer : {};
    const { signatures, message } = isObject(transaction) ? transaction : {};
    const { accountKeys, instructions } = isObject(message) ? message : {};
    const isOwn = Array.isArray(signatures) && signatures[0] === signature;
    if (!isOwn || !isObject(meta) || typeof slot !== "number") {
      throw unreadable(`expected transaction ${signature} with its meta, got ${quote(answer)}`);
    }
    const keys = listIn(accountKeys, "accountKeys");
    return {
      slot: BigInt(slot),
      hasFailed: meta["err"] !== null,
      transferLamports: this.#transfers(keys, listIn(instructions, "instructions")),
      gainLamports: this.#gain(keys, meta),
    };
  }

  #transfers(keys: readonly unknown[], instructions: readonly unknown[]): bigint {
    return instructions.reduce<bigint>((sum, instruction) => {
      const { programIdIndex, accounts, data } = isObject(instruction) ? instruction : {};
      if (keys[Number(programIdIndex)] !== systemProgram || typeof data !== "string") return sum;
      const bytes = decodeBase58(data);
      if (!bytes || bytes.length < 12) return sum;
      const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      const place = recipientIndex[view.getUint32(0, true)];
      if (place === undefined || !Array.isArray(accounts)) return sum;
      const isTip = this.#isOwn(keys[Number(accounts[place])]);
      // A transfer between two of the service's addresses pays nothing.
      const isPaid = !this.#isOwn(keys[Number(accounts[0])]);
      return isTip && isPaid ? sum + view.getBigUint64(4, true) : sum;
    }, 0n);
  }

  #isOwn(key: unknown): boolean {
    return typeof key === "string" && this.#addresses.has(key);
  }

  #gain(keys: readonly unknown[], meta: Readonly<Record<string, unknown>>): bigint {
    const before = listIn(meta["preBalances"], "preBalances");
    const after = listIn(meta["postBalances"], "postBalances");
    return keys.reduce<bigint>((sum, key, i) => {
      if (!this.#isOwn(key)) return sum;
      return sum + BigInt(Number(after[i])) - BigInt(Number(before[i]));
    }, 0n);
  }
}

function listIn(value: unknown, name: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw unreadable(`expected ${name} of a transaction, got ${quote(value)}`);
}

function unreadable(message: string): ShredwayError {
  return new ShredwayError("rpc_failed", `getTransaction: ${message}`);
}
