// Reference facts of a transaction from two other libraries; the native inspector must agree with
// both.

import { base58 } from "@scure/base";
import { getCompiledTransactionMessageDecoder, getTransactionDecoder } from "@solana/kit";
import { VersionedTransaction } from "@solana/web3.js";
import type { TransactionFacts, TransactionVersion } from "../../../src/core/transactions/facts.ts";

export interface DecodedInstruction {
  readonly program: number;
  readonly accounts: readonly number[];
  readonly data: Uint8Array;
}

export interface Decoded {
  readonly version: TransactionVersion;
  readonly signatures: readonly Uint8Array[];
  readonly requiredSignatures: number;
  readonly readonlySigned: number;
  readonly readonlyUnsigned: number;
  /** Base58. */
  readonly keys: readonly string[];
  readonly lifetime: string;
  readonly instructions: readonly DecodedInstruction[];
  readonly loadedAccounts: number;
  readonly priorityFeeLamports: bigint;
  readonly computeUnitLimit: number;
}

export function decodeByWeb3(wire: Uint8Array): Decoded {
  const { message, signatures } = VersionedTransaction.deserialize(wire);
  const lookups = message.version === "legacy" ? [] : message.addressTableLookups;
  const config = message.version === 1 ? message.transactionConfig : undefined;
  return {
    version: message.version,
    signatures,
    requiredSignatures: message.header.numRequiredSignatures,
    readonlySigned: message.header.numReadonlySignedAccounts,
    readonlyUnsigned: message.header.numReadonlyUnsignedAccounts,
    keys: message.staticAccountKeys.map((key) => key.toBase58()),
    lifetime: message.recentBlockhash,
    instructions: message.compiledInstructions.map((instruction) => ({
      program: instruction.programIdIndex,
      accounts: [...instruction.accountKeyIndexes],
      data: Uint8Array.from(instruction.data),
    })),
    loadedAccounts: lookups.reduce(
      (count, { writableIndexes, readonlyIndexes }) =>
        count + writableIndexes.length + readonlyIndexes.length,
      0,
    ),
    priorityFeeLamports: BigInt(config?.priorityFee ?? 0),
    computeUnitLimit: config?.computeUnitLimit ?? 0,
  };
}

type KitMessage = ReturnType<ReturnType<typeof getCompiledTransactionMessageDecoder>["decode"]>;

function kitInstructions(message: KitMessage): DecodedInstruction[] {
  if (message.version !== 1) {
    return message.instructions.map((instruction) => ({
      program: instruction.programAddressIndex,
      accounts: instruction.accountIndices ?? [],
      data: Uint8Array.from(instruction.data ?? []),
    }));
  }
  return message.instructionHeaders.map(({ programAccountIndex }, i) => ({
    program: programAccountIndex,
    accounts: message.instructionPayloads[i]?.instructionAccountIndices ?? [],
    data: Uint8Array.from(message.instructionPayloads[i]?.instructionData ?? []),
  }));
}

function kitConfig(message: KitMessage): { priorityFeeLamports: bigint; computeUnitLimit: number } {
  if (message.version !== 1) return { priorityFeeLamports: 0n, computeUnitLimit: 0 };
  const values = message.configValues.map(({ value }) => BigInt(value));
  const hasFee = (message.configMask & 3) === 3;
  const hasUnits = (message.configMask & 4) !== 0;
  return {
    priorityFeeLamports: hasFee ? (values[0] ?? 0n) : 0n,
    computeUnitLimit: hasUnits ? Number(values[hasFee ? 1 : 0]) : 0,
  };
}

export function decodeByKit(wire: Uint8Array): Decoded {
  const { messageBytes, signatures } = getTransactionDecoder().decode(wire);
  const message = getCompiledTransactionMessageDecoder().decode(messageBytes);
  const lookups = message.version === 0 ? (message.addressTableLookups ?? []) : [];
  return {
    version: message.version,
    signatures: Object.values(signatures).map((one) => Uint8Array.from(one ?? new Uint8Array(64))),
    requiredSignatures: message.header.numSignerAccounts,
    readonlySigned: message.header.numReadonlySignerAccounts,
    readonlyUnsigned: message.header.numReadonlyNonSignerAccounts,
    keys: message.staticAccounts.map(String),
    lifetime: "lifetimeToken" in message ? message.lifetimeToken : "",
    instructions: kitInstructions(message),
    loadedAccounts: lookups.reduce(
      (count, { writableIndexes, readonlyIndexes }) =>
        count + writableIndexes.length + readonlyIndexes.length,
      0,
    ),
    ...kitConfig(message),
  };
}

// ---- facts ----------------------------------------------------------------------------------

const systemProgram = "11111111111111111111111111111111";
const budgetProgram = "ComputeBudget111111111111111111111111111111";
const otherBuiltins: ReadonlySet<string> = new Set([
  "Vote111111111111111111111111111111111111111",
  "BPFLoader1111111111111111111111111111111111",
  "BPFLoader2111111111111111111111111111111111",
  "BPFLoaderUpgradeab1e11111111111111111111111",
  "LoaderV411111111111111111111111111111111111",
  "KeccakSecp256k11111111111111111111111111111",
  "Ed25519SigVerify111111111111111111111111111",
]);
const u64Max = 0xffff_ffff_ffff_ffffn;

/** The facts that do not refer to the bytes; keys in base58. */
export interface ReferenceFacts
  extends Pick<
    TransactionFacts,
    | "version"
    | "signature"
    | "tipLamports"
    | "computeUnitLimit"
    | "computeUnitPrice"
    | "priorityFeeLamports"
    | "hasFrontKey"
  > {
  readonly feePayer: string;
  readonly lifetime: string;
  readonly nonce: readonly [string, string] | null;
}

export function plainFacts(facts: TransactionFacts): ReferenceFacts {
  const { wire: _wire, signatureBytes: _signature, feePayer, lifetime, nonce, ...rest } = facts;
  return {
    ...rest,
    feePayer: base58.encode(feePayer),
    lifetime: base58.encode(lifetime),
    nonce: nonce && [base58.encode(nonce.account), base58.encode(nonce.authority)],
  };
}

function isWritable({ keys, ...header }: Decoded, place: number): boolean {
  if (place >= keys.length) return false;
  return place < header.requiredSignatures
    ? place < header.requiredSignatures - header.readonlySigned
    : place < keys.length - header.readonlyUnsigned;
}

function tipOf(decoded: Decoded, one: DecodedInstruction, tips: ReadonlySet<string>): bigint {
  const { accounts } = one;
  const data = Buffer.from(one.data);
  if (decoded.keys[one.program] !== systemProgram || data.length < 12) return 0n;
  const tag = data.readUInt32LE(0);
  const isSeeded = tag === 11;
  if (tag !== 2 && !isSeeded) return 0n;
  if (isSeeded) {
    if (data.length < 52) return 0n;
    const seedBytes = data.readBigUInt64LE(12);
    if (seedBytes > 32n || BigInt(data.length) < 52n + seedBytes) return 0n;
  }
  const [source, signer, recipient] = isSeeded ? accounts : [accounts[0], accounts[0], accounts[1]];
  if (source === undefined || signer === undefined || recipient === undefined) return 0n;
  const isPaid =
    signer < decoded.requiredSignatures &&
    isWritable(decoded, source) &&
    isWritable(decoded, recipient) &&
    tips.has(decoded.keys[recipient] ?? "") &&
    !tips.has(decoded.keys[source] ?? "");
  return isPaid ? data.readBigUInt64LE(4) : 0n;
}

function nonceOf(decoded: Decoded): readonly [string, string] | null {
  const [first] = decoded.instructions;
  if (!first || decoded.keys[first.program] !== systemProgram) return null;
  if (Buffer.from(first.data.subarray(0, 4)).toString("hex") !== "04000000") return null;
  const [account, , usual] = first.accounts;
  if (account === undefined || !isWritable(decoded, account)) return null;
  const signs = (place: number) => place < decoded.requiredSignatures;
  const authority = usual !== undefined && signs(usual) ? usual : first.accounts.find(signs);
  if (authority === undefined) return null;
  return [decoded.keys[account] ?? "", decoded.keys[authority] ?? ""];
}

/** "invalid" if a validator would refuse it. */
function budgetOf(decoded: Decoded): { units: number; price: bigint; fee: bigint } | "invalid" {
  if (decoded.version === 1) {
    const units = Math.min(decoded.computeUnitLimit, 1_400_000);
    return { units, price: 0n, fee: decoded.priorityFeeLamports };
  }
  const expectedFees = new Map<number, bigint>();
  let defaultUnits = 0;
  for (const { program, data } of decoded.instructions) {
    const key = decoded.keys[program] ?? "";
    const isBuiltin = key === systemProgram || key === budgetProgram || otherBuiltins.has(key);
    defaultUnits += isBuiltin ? 3_000 : 200_000;
    if (key !== budgetProgram) continue;
    const tag = data[0] ?? 0;
    const valueBytes = tag === 3 ? 8 : 4;
    if (tag < 1 || tag > 4 || data.length < 1 + valueBytes || expectedFees.has(tag))
      return "invalid";
    const hex = Buffer.from(data.slice(1, 1 + valueBytes).toReversed()).toString("hex");
    expectedFees.set(tag, BigInt(`0x${hex}`));
  }
  const heap = expectedFees.get(1) ?? 32_768n;
  if (heap < 32_768n || heap > 262_144n || heap % 1024n !== 0n || expectedFees.get(4) === 0n)
    return "invalid";
  const limit = expectedFees.get(2) ?? BigInt(defaultUnits);
  const units = limit > 1_400_000n ? 1_400_000n : limit;
  const price = expectedFees.get(3) ?? 0n;
  const fee = (price * units + 999_999n) / 1_000_000n;
  return { units: Number(units), price, fee: fee > u64Max ? u64Max : fee };
}

export interface Known {
  /** Base58. */
  readonly tips: ReadonlySet<string>;
  readonly prefixes: readonly string[];
}

/** "invalid" if the budget instructions are invalid. */
export function referenceFacts(decoded: Decoded, known: Known): ReferenceFacts | "invalid" {
  const budget = budgetOf(decoded);
  const tipLamports = decoded.instructions.reduce(
    (sum, instruction) => sum + tipOf(decoded, instruction, known.tips),
    0n,
  );
  if (budget === "invalid" || tipLamports > u64Max) return "invalid";
  return {
    version: decoded.version,
    signature: base58.encode(decoded.signatures[0] ?? new Uint8Array()),
    feePayer: decoded.keys[0] ?? "",
    lifetime: decoded.lifetime,
    nonce: nonceOf(decoded),
    tipLamports,
    computeUnitLimit: budget.units,
    computeUnitPrice: budget.price,
    priorityFeeLamports: budget.fee,
    hasFrontKey: decoded.keys.some((key) => known.prefixes.some((one) => key.startsWith(one))),
  };
}
