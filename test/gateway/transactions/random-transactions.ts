// Random transactions for the inspector: every version, tips, nonces, budgets, lookups, and some
// that are wrong in one place.

import { base58 } from "@scure/base";
import type { SeededRandom } from "../../../src/core/seeded-random.ts";

interface RandomInstruction {
  readonly program: number;
  readonly accounts: readonly number[];
  readonly data: Uint8Array;
}

function integer(value: bigint | number, bytes: number): Buffer {
  const buffer = Buffer.alloc(bytes);
  let rest = BigInt(value);
  for (let i = 0; i < bytes; i++, rest >>= 8n) buffer[i] = Number(rest & 255n);
  return buffer;
}

function compactU16(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest >>= 7) bytes.push((rest & 0x7f) | 0x80);
  return Buffer.from([...bytes, rest]);
}

function list(bytes: Uint8Array | readonly number[]): Buffer {
  return Buffer.concat([compactU16(bytes.length), Uint8Array.from(bytes)]);
}

const programs = [
  "11111111111111111111111111111111",
  "ComputeBudget111111111111111111111111111111",
  "Vote111111111111111111111111111111111111111",
  "BPFLoaderUpgradeab1e11111111111111111111111",
  "Ed25519SigVerify111111111111111111111111111",
  "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA",
].map((text) => base58.decode(text));
const system = 0;
const budget = 1;

/** Keys to choose from, including the operator's. */
export interface Material {
  readonly tips: readonly Uint8Array[];
  readonly frontKeys: readonly Uint8Array[];
}

export class TransactionMaker {
  readonly #random: SeededRandom;
  readonly #material: Material;

  constructor(random: SeededRandom, material: Material) {
    this.#random = random;
    this.#material = material;
  }

  make(): Uint8Array {
    const version = this.#pick(["legacy", 0, 1] as const);
    const required = 1 + this.#random.below(3);
    const others = Array.from({ length: this.#random.below(5) }, () => this.#bytes(32));
    if (this.#random.happens(0.35)) others.push(this.#pick(this.#material.frontKeys));
    const writable = [...this.#material.tips, ...others];
    const signers = Array.from({ length: required }, () => this.#bytes(32));
    if (this.#random.happens(0.1)) signers[0] = this.#pick(this.#material.tips);
    const keys = [...new Set([...signers, ...writable, ...programs])];
    const lookups =
      version === 0 ? this.#lookups() : { count: 0, loaded: 0, bytes: Buffer.alloc(0) };
    const instructions = this.#instructions(keys.length, lookups.loaded);
    const header = [required, this.#random.below(required), programs.length];
    if (this.#random.happens(0.05)) header[this.#random.below(3)] = this.#random.below(40);
    if (version === 1) return this.#v1(header, keys, instructions);
    const message = Buffer.concat([
      Uint8Array.from(version === 0 ? [0x80, ...header] : header),
      compactU16(keys.length),
      ...keys,
      this.#bytes(32),
      compactU16(instructions.length),
      ...instructions.flatMap(({ program, accounts, data }) => [
        Uint8Array.of(program),
        list(accounts),
        list(data),
      ]),
      ...(version === 0 ? [compactU16(lookups.count), lookups.bytes] : []),
    ]);
    const signatures = Array.from({ length: required }, () => this.#bytes(64));
    return Uint8Array.from(Buffer.concat([compactU16(required), ...signatures, message]));
  }

  /** The same with up to three changed bytes. */
  corrupted(wire: Uint8Array): Uint8Array {
    const copy = Uint8Array.from(wire);
    for (let left = 1 + this.#random.below(3); left > 0; left--) {
      const at = this.#random.below(copy.length);
      copy[at] = this.#random.happens(0.5) ? this.#random.below(256) : this.#random.below(16);
    }
    return copy;
  }

  #pick<T>(choices: readonly T[]): T {
    const choice = choices[this.#random.below(choices.length)];
    if (choice === undefined) throw new Error("nothing to choose from");
    return choice;
  }

  #bytes(length: number): Uint8Array {
    return this.#random.fillBytes(new Uint8Array(length));
  }

  #lookups(): { count: number; loaded: number; bytes: Buffer } {
    const count = this.#random.below(3);
    let loaded = 0;
    const parts = Array.from({ length: count }, () => {
      const writable = this.#bytes(this.#random.below(4));
      const readonly = this.#bytes(this.#random.happens(0.9) ? 1 : 0);
      loaded += writable.length + readonly.length;
      return Buffer.concat([this.#bytes(32), list(writable), list(readonly)]);
    });
    return { count, loaded, bytes: Buffer.concat(parts) };
  }

  #instructions(keyCount: number, loaded: number): RandomInstruction[] {
    const firstProgram = keyCount - programs.length;
    const account = () => this.#random.below(keyCount + loaded);
    const accounts = (count: number) => Array.from({ length: count }, account);
    const created: RandomInstruction[] = [];
    if (this.#random.happens(0.3)) {
      const tag = this.#random.happens(0.9) ? 4 : this.#random.below(6);
      const data = Buffer.concat([integer(tag, 4), this.#bytes(this.#random.below(2))]);
      created.push({
        program: firstProgram + system,
        accounts: accounts(this.#random.below(5)),
        data,
      });
    }
    for (let left = this.#random.below(6); left > 0; left--) {
      created.push(
        this.#pick([
          () => this.#budget(firstProgram + budget),
          () => this.#transfer(firstProgram + system, account),
          () => this.#transfer(firstProgram + system, account),
          () => this.#seededTransfer(firstProgram + system, account),
          () => ({
            program: this.#random.happens(0.98)
              ? firstProgram + 2 + this.#random.below(4)
              : account(),
            accounts: accounts(this.#random.below(4)),
            data: this.#bytes(this.#random.below(20)),
          }),
        ])(),
      );
    }
    return created;
  }

  #lamports(): bigint {
    return this.#random.happens(0.05) ? 2n ** 63n : BigInt(this.#random.below(100_000));
  }

  /** Mostly from a signer to one of the first unsigned keys, where tips are. */
  #transfer(program: number, account: () => number): RandomInstruction {
    const from = this.#random.happens(0.8) ? 0 : account();
    const to = this.#random.happens(0.8) ? 1 + this.#random.below(6) : account();
    const data = Buffer.concat([integer(2, 4), integer(this.#lamports(), 8)]);
    const length = this.#random.happens(0.9) ? 12 : this.#random.below(16);
    const accounts = this.#random.happens(0.95) ? [from, to] : [from];
    return { program, accounts, data: Buffer.concat([data, Buffer.alloc(4)]).subarray(0, length) };
  }

  #seededTransfer(program: number, account: () => number): RandomInstruction {
    const seed = this.#bytes(this.#random.below(36));
    const length = this.#random.happens(0.9) ? seed.length : this.#random.below(64);
    const parts = [integer(11, 4), integer(this.#lamports(), 8), integer(length, 8), seed];
    const data = Buffer.concat([...parts, this.#bytes(32)]);
    return {
      program,
      accounts: [account(), this.#random.below(2), 1 + this.#random.below(6)],
      data,
    };
  }

  #budget(program: number): RandomInstruction {
    const tag = this.#random.happens(0.97) ? 1 + this.#random.below(4) : this.#random.below(256);
    const value = this.#pick([
      () => BigInt(this.#random.below(2_000_000)),
      () => BigInt(32 + this.#random.below(240)) * 1024n,
      () => BigInt(this.#random.u32()) * BigInt(this.#random.u32()),
    ])();
    const data = Buffer.concat([Uint8Array.of(tag), integer(value, tag === 3 ? 8 : 4)]);
    const end = this.#random.happens(0.97) ? data.length : this.#random.below(data.length);
    return { program, accounts: [], data: data.subarray(0, end) };
  }

  #v1(
    header: readonly number[],
    keys: readonly Uint8Array[],
    instructions: readonly RandomInstruction[],
  ): Uint8Array {
    const mask = this.#pick([0, 3, 4, 7, 15, 16, 31, 28, this.#random.below(64)]);
    const heap = this.#random.happens(0.9) ? 32_768 + 1024 * this.#random.below(100) : 1000;
    const values = [
      ...((mask & 3) === 3 ? [integer(BigInt(this.#random.u32()), 8)] : []),
      ...((mask & 3) === 1 || (mask & 3) === 2 ? [integer(1, 4)] : []),
      ...((mask & 4) !== 0 ? [integer(this.#random.below(2_000_000), 4)] : []),
      ...((mask & 8) !== 0 ? [integer(this.#random.below(2), 4)] : []),
      ...((mask & 16) !== 0 ? [integer(heap, 4)] : []),
      ...((mask & 32) !== 0 ? [integer(7, 4)] : []),
    ];
    return Uint8Array.from(
      Buffer.concat([
        Uint8Array.from([0x81, ...header]),
        integer(mask, 4),
        this.#bytes(32),
        Uint8Array.of(instructions.length, keys.length),
        ...keys,
        ...values,
        ...instructions.map(({ program, accounts, data }) =>
          Buffer.concat([Uint8Array.of(program, accounts.length), integer(data.length, 2)]),
        ),
        ...instructions.flatMap(({ accounts, data }) => [Uint8Array.from(accounts), data]),
        ...Array.from({ length: header[0] ?? 0 }, () => this.#bytes(64)),
      ]),
    );
  }
}
