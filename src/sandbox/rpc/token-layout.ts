// Layouts of the token programs' accounts: mints, token accounts, multisignatures.
//
// Called by the token methods and by parse-account.ts. Layouts of SPL Token (82, 165 and 355
// bytes). Token-2022 accounts with extensions begin with the same bytes, and byte 165 is their
// type. Returns undefined for accounts that are not initialized.

import { Fields } from "./bytes.ts";

const mintBytes = 82;
export const tokenAccountBytes = 165;
const multisigBytes = 355;
const accountTypeAt = 165;
const accountTypes = { mint: 1, account: 2 } as const;
const multisigSignersMax = 11;
const tokenAccountStates = ["uninitialized", "initialized", "frozen"] as const;

export interface Mint {
  readonly mintAuthority: string | null;
  readonly supply: bigint;
  readonly decimals: number;
  readonly freezeAuthority: string | null;
}

export interface TokenAccount {
  readonly mint: string;
  readonly owner: string;
  readonly amount: bigint;
  readonly delegate: string | null;
  readonly state: (typeof tokenAccountStates)[number];
  /** Rent-exempt lamports of wrapped SOL; null: not wrapped SOL. */
  readonly nativeReserve: bigint | null;
  readonly delegatedAmount: bigint;
  readonly closeAuthority: string | null;
}

interface Multisig {
  readonly required: number;
  readonly valid: number;
  readonly signers: readonly string[];
}

function optionalKey(fields: Fields, at: number): string | null {
  return fields.u32(at) === 1 ? fields.key(at + 4) : null;
}

function isOfType(data: Uint8Array, exactBytes: number, type: number): boolean {
  return data.length === exactBytes || (data.length > 166 && data[accountTypeAt] === type);
}

export function readMint(data: Uint8Array): Mint | undefined {
  if (!isOfType(data, mintBytes, accountTypes.mint)) return undefined;
  const fields = new Fields(data);
  if (fields.u8(45) !== 1) return undefined;
  return {
    mintAuthority: optionalKey(fields, 0),
    supply: fields.u64(36),
    decimals: fields.u8(44),
    freezeAuthority: optionalKey(fields, 46),
  };
}

export function readTokenAccount(data: Uint8Array): TokenAccount | undefined {
  if (!isOfType(data, tokenAccountBytes, accountTypes.account)) return undefined;
  const fields = new Fields(data);
  const state = tokenAccountStates[fields.u8(108)];
  if (state === undefined || state === "uninitialized") return undefined;
  return {
    mint: fields.key(0),
    owner: fields.key(32),
    amount: fields.u64(64),
    delegate: optionalKey(fields, 72),
    state,
    nativeReserve: fields.u32(109) === 1 ? fields.u64(113) : null,
    delegatedAmount: fields.u64(121),
    closeAuthority: optionalKey(fields, 129),
  };
}

export function readMultisig(data: Uint8Array): Multisig | undefined {
  if (data.length !== multisigBytes || data[2] !== 1) return undefined;
  const fields = new Fields(data);
  const valid = Math.min(fields.u8(1), multisigSignersMax);
  const signers = Array.from({ length: valid }, (_, index) => fields.key(3 + 32 * index));
  return { required: fields.u8(0), valid, signers };
}

interface UiTokenAmount {
  readonly amount: string;
  readonly decimals: number;
  readonly uiAmount: number | null;
  readonly uiAmountString: string;
}

/** `amount` in the node's format: raw, as a float, and as exact decimal text. */
export function uiTokenAmount(amount: bigint, decimals: number): UiTokenAmount {
  const digits = amount.toString().padStart(decimals + 1, "0");
  const whole = digits.slice(0, digits.length - decimals);
  const fraction = digits.slice(digits.length - decimals).replace(/0+$/, "");
  const uiAmountString = fraction === "" ? whole : `${whole}.${fraction}`;
  return { amount: amount.toString(), decimals, uiAmount: Number(uiAmountString), uiAmountString };
}
