// Transactions around the advance of a nonce, built by two client libraries: some that its
// authority may sign, and some that misuse its signature.

import {
  AccountRole,
  address,
  appendTransactionMessageInstructions,
  blockhash,
  compileTransaction,
  compressTransactionMessageUsingAddressLookupTables,
  createTransactionMessage,
  getTransactionEncoder,
  type Instruction,
  isSolanaError,
  lamports,
  pipe,
  setTransactionMessageConfig,
  setTransactionMessageFeePayer,
  setTransactionMessageLifetimeUsingBlockhash,
  signatureBytes,
} from "@solana/kit";
import {
  AddressLookupTableAccount,
  PublicKey,
  TransactionInstruction,
  TransactionMessage,
  VersionedTransaction,
} from "@solana/web3.js";
import type { SeededRandom } from "../../../src/core/seeded-random.ts";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { SandboxKeyPair } from "../../../src/sandbox/chain/keys.ts";
import { u32, u64 } from "../little-endian.ts";

function keys(seed: number): SandboxKeyPair {
  return new SandboxKeyPair(new Uint8Array(32).fill(seed));
}

export const payer = keys(61);
export const authority = keys(62);
export const cosigner = keys(63);
export const nonceAccount = keys(64);
export const otherNonce = keys(65);
export const bob = keys(66);
export const carol = keys(67);
export const everybody = [payer, authority, cosigner, nonceAccount, otherNonce, bob, carol];

export const system = "11111111111111111111111111111111";
export const sysvar = "SysvarRecentB1ockHashes11111111111111111111";
export const memo = "MemoSq4gqABAXKb96qnH8TysNcWxMyWqCqD4cYGzQ8k";
const budget = "ComputeBudget111111111111111111111111111111";
/** The nonce's default value. */
export const lifetime = encodeBase58(new Uint8Array(32).fill(9));

// ---- instructions ---------------------------------------------------------------------------

export interface Account {
  readonly address: string;
  readonly signs?: boolean;
  readonly writable?: boolean;
}

export interface Words {
  readonly program: string;
  readonly accounts: readonly Account[];
  readonly data: Uint8Array;
}

export function signing(pair: SandboxKeyPair): Account {
  return { address: pair.address, signs: true };
}
export function writing(pair: SandboxKeyPair): Account {
  return { address: pair.address, writable: true };
}
export function paying(pair: SandboxKeyPair): Account {
  return { address: pair.address, signs: true, writable: true };
}

export function systemCall(tag: number, accounts: readonly Account[], rest?: Uint8Array): Words {
  const data = Uint8Array.from([...u32(tag), ...(rest ?? [])]);
  return { program: system, accounts, data };
}

export function advance(choices: Partial<Words> = {}): Words {
  const accounts = [writing(nonceAccount), { address: sysvar }, signing(authority)];
  return { ...systemCall(4, accounts), ...choices };
}

export function transfer(from: Account, to: Account, amount = 10_000n): Words {
  return systemCall(2, [from, to], u64(amount));
}

export function withdraw(): Words {
  const rent = { address: "SysvarRent111111111111111111111111111111111" };
  const accounts = [writing(nonceAccount), writing(bob), { address: sysvar }, rent];
  return systemCall(5, [...accounts, signing(authority)], u64(1n));
}

export function authorise(): Words {
  return systemCall(7, [writing(nonceAccount), signing(authority)], bob.publicKey);
}

export function price(microLamports: bigint): Words {
  return { program: budget, accounts: [], data: Uint8Array.from([3, ...u64(microLamports)]) };
}

export function mention(...accounts: readonly Account[]): Words {
  return { program: memo, accounts, data: Uint8Array.of(104, 105) };
}

// ---- transactions ---------------------------------------------------------------------------

export type Library = "web3.js" | "kit";

export interface Choices {
  readonly library?: Library;
  /** 1: only by kit. */
  readonly version?: "legacy" | 0 | 1;
  readonly payer?: SandboxKeyPair;
  /** Addresses in a lookup table; null: no table. */
  readonly table?: readonly string[] | null;
  /** Signers whose signatures stay zero. */
  readonly missing?: readonly SandboxKeyPair[];
  readonly lifetime?: string;
  /** In lamports, for version 1. */
  readonly fee?: bigint;
}

type Complete = Required<Choices> & { readonly words: readonly Words[] };

function signatureOf(signer: string, message: Uint8Array, missing: readonly SandboxKeyPair[]) {
  const pair = everybody.find((each) => each.address === signer);
  return !pair || missing.includes(pair) ? new Uint8Array(64) : Uint8Array.from(pair.sign(message));
}

function byWeb3(choices: Complete): Uint8Array {
  const { version, payer: who, table, missing, words } = choices;
  const message = new TransactionMessage({
    payerKey: new PublicKey(who.address),
    recentBlockhash: choices.lifetime,
    instructions: words.map(
      ({ program, accounts, data }) =>
        new TransactionInstruction({
          programId: new PublicKey(program),
          keys: accounts.map(({ address: text, signs = false, writable = false }) => ({
            pubkey: new PublicKey(text),
            isSigner: signs,
            isWritable: writable,
          })),
          data: Buffer.from(data),
        }),
    ),
  });
  const state = {
    deactivationSlot: 2n ** 64n - 1n,
    lastExtendedSlot: 0,
    lastExtendedSlotStartIndex: 0,
    addresses: (table ?? []).map((text) => new PublicKey(text)),
  };
  const key = new PublicKey(keys(90).publicKey);
  const tables = table ? [new AddressLookupTableAccount({ key, state })] : [];
  const compiled =
    version === "legacy" ? message.compileToLegacyMessage() : message.compileToV0Message(tables);
  const transaction = new VersionedTransaction(compiled);
  const { header, staticAccountKeys } = transaction.message;
  const bytes = transaction.message.serialize();
  for (const signer of staticAccountKeys.slice(0, header.numRequiredSignatures)) {
    transaction.addSignature(signer, signatureOf(signer.toBase58(), bytes, missing));
  }
  return transaction.serialize();
}

function roleOf({ signs, writable }: Account): AccountRole {
  if (signs) return writable ? AccountRole.WRITABLE_SIGNER : AccountRole.READONLY_SIGNER;
  return writable ? AccountRole.WRITABLE : AccountRole.READONLY;
}

function withTable(instructions: readonly Instruction[], table: readonly string[] | null) {
  const message = createTransactionMessage({ version: 0 });
  const whole = appendTransactionMessageInstructions(instructions, message);
  if (!table) return whole;
  const tables = { [address(keys(90).address)]: table.map((text) => address(text)) };
  return compressTransactionMessageUsingAddressLookupTables(whole, tables);
}

function empty(version: "legacy" | 1, fee: bigint) {
  if (version === "legacy") return createTransactionMessage({ version });
  const config = { priorityFeeLamports: lamports(fee), computeUnitLimit: 10_000 };
  return setTransactionMessageConfig(config, createTransactionMessage({ version }));
}

function byKit(choices: Complete): Uint8Array {
  const { version, payer: who, table, missing, words } = choices;
  const instructions = words.map(
    ({ program, accounts, data }): Instruction => ({
      programAddress: address(program),
      accounts: accounts.map((each) => ({ address: address(each.address), role: roleOf(each) })),
      data,
    }),
  );
  const message =
    version === 0
      ? withTable(instructions, table)
      : appendTransactionMessageInstructions(instructions, empty(version, choices.fee));
  const fixedLifetime = { blockhash: blockhash(choices.lifetime), lastValidBlockHeight: 0n };
  const compiled = compileTransaction(
    pipe(
      message,
      (m) => setTransactionMessageFeePayer(address(who.address), m),
      (m) => setTransactionMessageLifetimeUsingBlockhash(fixedLifetime, m),
    ),
  );
  const signed = Object.keys(compiled.signatures).map((signer) => {
    const signature = signatureOf(signer, Uint8Array.from(compiled.messageBytes), missing);
    return [signer, signatureBytes(signature)] as const;
  });
  return Uint8Array.from(
    getTransactionEncoder().encode({ ...compiled, signatures: Object.fromEntries(signed) }),
  );
}

/**
 * Built by web3.js as v0, paid by the payer, without a table; the authority's signature is missing.
 */
export function built(words: readonly Words[], choices: Choices = {}): Uint8Array {
  const complete: Complete = {
    library: "web3.js",
    version: 0,
    payer,
    table: null,
    missing: [authority],
    lifetime,
    fee: 0n,
    words,
    ...choices,
  };
  return complete.library === "kit" ? byKit(complete) : byWeb3(complete);
}

// ---- random transactions ---------------------------------------------------------------------

export class AdvanceMaker {
  readonly #random: SeededRandom;

  constructor(random: SeededRandom) {
    this.#random = random;
  }

  /** The authority may sign about half of them. */
  make(library: Library): Uint8Array {
    try {
      return this.#make(library);
    } catch (thrown) {
      // Kit builds nothing with a program that is writable or signs.
      if (isSolanaError(thrown)) return this.make(library);
      throw thrown;
    }
  }

  #make(library: Library): Uint8Array {
    const words = [this.#first()];
    for (let left = this.#random.below(5); left > 0; left--) words.push(this.#next());
    if (this.#random.happens(0.03)) words.reverse();
    const plain = [bob.address, carol.address];
    return built(words, {
      library,
      version: this.#random.happens(0.35) ? "legacy" : 0,
      payer: this.#random.happens(0.06) ? this.#pick([authority, nonceAccount]) : payer,
      table: this.#pick([
        null,
        null,
        plain,
        plain,
        [...plain, this.#pick(everybody).address, sysvar],
      ]),
      missing: this.#missing(),
    });
  }

  #pick<T>(choices: readonly T[]): T {
    const choice = choices[this.#random.below(choices.length)];
    if (choice === undefined) throw new Error("nothing to choose from");
    return choice;
  }

  #missing(): SandboxKeyPair[] {
    if (this.#random.happens(0.08)) return this.#pick([[], [payer], [authority, payer]]);
    return this.#random.happens(0.05) ? [authority, cosigner] : [authority];
  }

  #first(): Words {
    if (this.#random.happens(0.8)) return advance();
    const { accounts, data } = advance();
    return this.#pick([
      advance({ data: Uint8Array.of(...data, this.#random.below(2)) }),
      advance({ data: u32(this.#random.below(8)) }),
      advance({ accounts: accounts.slice(0, this.#random.below(4)) }),
      advance({ accounts: [...accounts, this.#account()] }),
      advance({ accounts: accounts.with(this.#random.below(3), this.#account()) }),
      advance({ accounts: [accounts[0], accounts[1], paying(authority)].flatMap((a) => a ?? []) }),
      advance({ program: memo }),
      withdraw(),
    ]);
  }

  #account(): Account {
    const { address: text } = this.#random.happens(0.07) ? authority : this.#pick(everybody);
    return {
      address: text,
      signs: this.#random.happens(0.3) && text !== authority.address,
      writable: this.#random.happens(0.4) && text !== authority.address,
    };
  }

  #next(): Words {
    const other = () => this.#pick([bob, carol, nonceAccount, otherNonce]);
    if (this.#random.happens(0.88)) {
      return this.#pick([
        () => transfer(paying(payer), writing(other())),
        () => transfer(paying(cosigner), writing(other())),
        () => mention(signing(cosigner), writing(other())),
        () => mention(),
        () => ({ ...mention(writing(other())), program: carol.address }),
      ])();
    }
    return this.#pick([
      () => transfer(paying(authority), writing(bob)),
      () => transfer(paying(payer), writing(authority)),
      () => advance(),
      () => withdraw(),
      () => authorise(),
      () => mention(signing(authority)),
      () => mention(this.#account(), { address: authority.address }),
      () => ({ ...mention(), program: authority.address }),
      () => mention(this.#account(), this.#account()),
    ])();
  }
}
