// Nonce accounts of the simulated chain: their values in each block, and how transactions change them.
//
// The rules are those of the System program and of the runtime, written down again: a transaction with a
// durable nonce is valid while its lifetime is the account's value and the account's authority signs. It
// advances the nonce, even if it fails. In one block a nonce advances once.

import { createHash } from "node:crypto";
import type { WireTransaction } from "../../../src/sandbox/chain/wire.ts";

/** All in hex. */
export interface NonceState {
  readonly authority: string;
  readonly value: string;
}

/** Accounts by their addresses in hex. */
export type NonceStates = ReadonlyMap<string, NonceState>;

/** The effect of a transaction on a nonce account; addresses in hex. */
export interface NonceUse {
  readonly kind: "create" | "advance";
  readonly account: string;
  /** The one that signs, or that the account gets. */
  readonly authority: string;
}

const systemProgram = Buffer.alloc(32);
const advanceInstruction = 4;
const initialiseInstruction = 6;

export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("hex");
}

/** The nonce that the transaction creates or advances first; null: none. */
export function nonceUseOf({ keys, instructions }: WireTransaction): NonceUse | null {
  for (const { program, accounts, data } of instructions) {
    const key = (place: number): string => hexOf(keys[accounts[place] ?? 0] ?? systemProgram);
    if (!systemProgram.equals(keys[program] ?? Buffer.alloc(0)) || data.length < 4) continue;
    const kind = Buffer.from(data).readUInt32LE(0);
    if (kind === advanceInstruction) return { kind: "advance", account: key(0), authority: key(2) };
    if (kind === initialiseInstruction)
      return { kind: "create", account: key(0), authority: hexOf(data.subarray(4, 36)) };
  }
  return null;
}

/** The accounts that exist before the first block: each customer's, by the address of their authority. */
export function firstNonces(
  accounts: readonly { readonly address: Uint8Array; readonly authority: Uint8Array }[],
): NonceStates {
  return new Map(
    accounts.map(({ address, authority }) => [
      hexOf(address),
      { authority: hexOf(authority), value: valueAfter(hexOf(address), "before the first block") },
    ]),
  );
}

function valueAfter(account: string, parentHash: string): string {
  return createHash("sha256").update(`nonce ${account} ${parentHash}`).digest("hex");
}

/** The nonce accounts while the transactions of a block are executed. */
export class NonceLedger {
  readonly #parent: NonceStates;
  readonly #parentHash: string;
  #changed: Map<string, NonceState> | null = null;

  /** `parentHash`: of the block before, which determines the new values. */
  constructor(parent: NonceStates, parentHash: string) {
    this.#parent = parent;
    this.#parentHash = parentHash;
  }

  get states(): NonceStates {
    return this.#changed ?? this.#parent;
  }

  /** Whether `lifetime` is the present value of the nonce that the transaction advances. */
  isDurable(use: NonceUse | null, lifetime: string): boolean {
    const state = use?.kind === "advance" ? this.states.get(use.account) : undefined;
    return state?.value === lifetime && state.authority === use?.authority;
  }

  /** Executes the instruction. Returns whether it succeeds; a failed one changes nothing. */
  use({ kind, account, authority }: NonceUse): boolean {
    const state = this.states.get(account);
    const value = valueAfter(account, this.#parentHash);
    const isPossible =
      kind === "create" ? !state : state?.authority === authority && state.value !== value;
    if (!isPossible) return false;
    this.#changed ??= new Map(this.#parent);
    this.#changed.set(account, { authority, value });
    return true;
  }
}
