// Instructions of the token programs in the encoding jsonParsed.
//
// Called by parse-instruction.ts. Data: u8 number, then packed little-endian fields. It covers the
// common instructions of SPL Token and Token-2022, and returns undefined for Token-2022 extensions
// and malformed instructions.

import { Fields } from "./bytes.ts";
import { namedAccounts } from "./parse-system.ts";
import type { ParsedInstruction, PlainInstruction } from "./parsed-instruction.ts";
import { uiTokenAmount } from "./token-layout.ts";

interface Shape {
  readonly type: string;
  readonly accounts: readonly string[];
  /** Number of bytes after the number. */
  readonly bytes: number;
  readonly fields?: (data: Fields) => object | undefined;
  /**
   * Name of the signing account, which follows `accounts`. If more accounts follow, it is a
   * multisignature account and they are its signers.
   */
  readonly authority?: string;
}

const amount = (data: Fields): object => ({ amount: data.u64(1).toString() });
const checkedAmount = (data: Fields): object => ({
  tokenAmount: uiTokenAmount(data.u64(1), data.u8(9)),
});
const owner = (data: Fields): object => ({ owner: data.key(1) });

const authorityTypes = ["mintTokens", "freezeAccount", "accountOwner", "closeAccount"] as const;

function initializeMint(data: Fields): object {
  const hasFreezeAuthority = data.length >= 67 && data.u8(34) === 1;
  return {
    decimals: data.u8(1),
    mintAuthority: data.key(2),
    ...(hasFreezeAuthority ? { freezeAuthority: data.key(35) } : {}),
  };
}

function setAuthority(data: Fields): object | undefined {
  const authorityType = authorityTypes[data.u8(1)];
  if (!authorityType || (data.u8(2) === 1 && data.length < 35)) return undefined;
  return { authorityType, newAuthority: data.u8(2) === 1 ? data.key(3) : null };
}

const shapes: Readonly<Record<number, Shape>> = {
  0: {
    type: "initializeMint",
    accounts: ["mint", "rentSysvar"],
    bytes: 34,
    fields: initializeMint,
  },
  1: {
    type: "initializeAccount",
    accounts: ["account", "mint", "owner", "rentSysvar"],
    bytes: 0,
  },
  3: {
    type: "transfer",
    accounts: ["source", "destination"],
    bytes: 8,
    fields: amount,
    authority: "authority",
  },
  4: {
    type: "approve",
    accounts: ["source", "delegate"],
    bytes: 8,
    fields: amount,
    authority: "owner",
  },
  5: { type: "revoke", accounts: ["source"], bytes: 0, authority: "owner" },
  6: {
    type: "setAuthority",
    accounts: ["account"],
    bytes: 2,
    fields: setAuthority,
    authority: "authority",
  },
  7: {
    type: "mintTo",
    accounts: ["mint", "account"],
    bytes: 8,
    fields: amount,
    authority: "mintAuthority",
  },
  8: {
    type: "burn",
    accounts: ["account", "mint"],
    bytes: 8,
    fields: amount,
    authority: "authority",
  },
  9: {
    type: "closeAccount",
    accounts: ["account", "destination"],
    bytes: 0,
    authority: "owner",
  },
  10: {
    type: "freezeAccount",
    accounts: ["account", "mint"],
    bytes: 0,
    authority: "freezeAuthority",
  },
  11: {
    type: "thawAccount",
    accounts: ["account", "mint"],
    bytes: 0,
    authority: "freezeAuthority",
  },
  12: {
    type: "transferChecked",
    accounts: ["source", "mint", "destination"],
    bytes: 9,
    fields: checkedAmount,
    authority: "authority",
  },
  13: {
    type: "approveChecked",
    accounts: ["source", "mint", "delegate"],
    bytes: 9,
    fields: checkedAmount,
    authority: "owner",
  },
  14: {
    type: "mintToChecked",
    accounts: ["mint", "account"],
    bytes: 9,
    fields: checkedAmount,
    authority: "mintAuthority",
  },
  15: {
    type: "burnChecked",
    accounts: ["account", "mint"],
    bytes: 9,
    fields: checkedAmount,
    authority: "authority",
  },
  16: {
    type: "initializeAccount2",
    accounts: ["account", "mint", "rentSysvar"],
    bytes: 32,
    fields: owner,
  },
  17: { type: "syncNative", accounts: ["account"], bytes: 0 },
  18: { type: "initializeAccount3", accounts: ["account", "mint"], bytes: 32, fields: owner },
  20: { type: "initializeMint2", accounts: ["mint"], bytes: 34, fields: initializeMint },
  22: { type: "initializeImmutableOwner", accounts: ["account"], bytes: 0 },
};

function signersOf(name: string, accounts: readonly string[]): object | undefined {
  const [authority, ...signers] = accounts;
  if (authority === undefined) return undefined;
  if (signers.length === 0) return { [name]: authority };
  return { [`multisig${name.charAt(0).toUpperCase()}${name.slice(1)}`]: authority, signers };
}

export function parseToken({ accounts, data }: PlainInstruction): ParsedInstruction {
  const shape = shapes[data[0] ?? -1];
  if (!shape || accounts.length < shape.accounts.length) return undefined;
  if (data.length < 1 + shape.bytes) return undefined;
  const values = shape.fields ? shape.fields(new Fields(data)) : {};
  const signers =
    shape.authority === undefined
      ? {}
      : signersOf(shape.authority, accounts.slice(shape.accounts.length));
  if (!values || !signers) return undefined;
  const info = { ...namedAccounts(shape.accounts, accounts), ...values, ...signers };
  return { type: shape.type, info };
}
