// Instructions of the System program in the encoding jsonParsed.
//
// Called by parse-instruction.ts. Data: u32 number, then fields in bincode (u64 little-endian,
// texts after a u64 length). Returns undefined for unknown numbers and for data or accounts that
// are too short.

import { Fields } from "./bytes.ts";
import type { ParsedInstruction, PlainInstruction } from "./parsed-instruction.ts";

interface Shape {
  /** Names of the required accounts; "" is not shown. */
  readonly accounts: readonly string[];
  /** Number of bytes after the number, without texts. */
  readonly bytes: number;
  readonly type: string;
  readonly fields?: (data: Fields, accounts: readonly string[]) => object | undefined;
}

/** A text at `at`, and the offset after it. */
function textAt(data: Fields, at: number, tailBytes: number): { text: string; end: number } | null {
  if (data.length < at + 8) return null;
  const length = data.u64(at);
  if (length > 64n || at + 8 + Number(length) + tailBytes > data.length) return null;
  const end = at + 8 + Number(length);
  return { text: data.text(at + 8, end), end };
}

function createWithSeed(data: Fields): object | undefined {
  const seed = textAt(data, 36, 48);
  if (!seed) return undefined;
  return {
    base: data.key(4),
    seed: seed.text,
    lamports: data.u64(seed.end),
    space: data.u64(seed.end + 8),
    owner: data.key(seed.end + 16),
  };
}

function withSeed(data: Fields, hasSpace: boolean): object | undefined {
  const seed = textAt(data, 36, hasSpace ? 40 : 32);
  if (!seed) return undefined;
  return {
    base: data.key(4),
    seed: seed.text,
    ...(hasSpace ? { space: data.u64(seed.end) } : {}),
    owner: data.key(seed.end + (hasSpace ? 8 : 0)),
  };
}

function transferWithSeed(data: Fields): object | undefined {
  const seed = textAt(data, 12, 32);
  if (!seed) return undefined;
  return { lamports: data.u64(4), sourceSeed: seed.text, sourceOwner: data.key(seed.end) };
}

const lamportsOnly = (data: Fields): object => ({ lamports: data.u64(4) });
const nonceAuthority = (data: Fields): object => ({ nonceAuthority: data.key(4) });
const creation = (data: Fields): object => ({
  lamports: data.u64(4),
  space: data.u64(12),
  owner: data.key(20),
});

/** Instructions by number. */
const shapes: readonly Shape[] = [
  { type: "createAccount", accounts: ["source", "newAccount"], bytes: 48, fields: creation },
  {
    type: "assign",
    accounts: ["account"],
    bytes: 32,
    fields: (data) => ({ owner: data.key(4) }),
  },
  { type: "transfer", accounts: ["source", "destination"], bytes: 8, fields: lamportsOnly },
  {
    type: "createAccountWithSeed",
    accounts: ["source", "newAccount"],
    bytes: 88,
    fields: createWithSeed,
  },
  {
    type: "advanceNonce",
    accounts: ["nonceAccount", "recentBlockhashesSysvar", "nonceAuthority"],
    bytes: 0,
  },
  {
    type: "withdrawFromNonce",
    accounts: [
      "nonceAccount",
      "destination",
      "recentBlockhashesSysvar",
      "rentSysvar",
      "nonceAuthority",
    ],
    bytes: 8,
    fields: lamportsOnly,
  },
  {
    type: "initializeNonce",
    accounts: ["nonceAccount", "recentBlockhashesSysvar", "rentSysvar"],
    bytes: 32,
    fields: nonceAuthority,
  },
  {
    type: "authorizeNonce",
    accounts: ["nonceAccount", "nonceAuthority"],
    bytes: 32,
    fields: (data) => ({ newAuthorized: data.key(4) }),
  },
  {
    type: "allocate",
    accounts: ["account"],
    bytes: 8,
    fields: (data) => ({ space: data.u64(4) }),
  },
  {
    type: "allocateWithSeed",
    accounts: ["account"],
    bytes: 80,
    fields: (data) => withSeed(data, true),
  },
  {
    type: "assignWithSeed",
    accounts: ["account"],
    bytes: 72,
    fields: (data) => withSeed(data, false),
  },
  {
    type: "transferWithSeed",
    accounts: ["source", "sourceBase", "destination"],
    bytes: 48,
    fields: transferWithSeed,
  },
  { type: "upgradeNonce", accounts: ["nonceAccount"], bytes: 0 },
  {
    type: "createAccountAllowPrefund",
    accounts: ["newAccount"],
    bytes: 48,
    fields: (data, accounts) => ({
      ...creation(data),
      ...(accounts[1] === undefined ? {} : { source: accounts[1] }),
    }),
  },
];

/** The first accounts, by their names. */
export function namedAccounts(
  names: readonly string[],
  accounts: readonly string[],
): Record<string, string> {
  const named: Record<string, string> = {};
  for (const [index, name] of names.entries()) named[name] = accounts[index] ?? "";
  return named;
}

export function parseSystem({ accounts, data }: PlainInstruction): ParsedInstruction {
  if (data.length < 4) return undefined;
  const fields = new Fields(data);
  const shape = shapes[fields.u32(0)];
  if (!shape || accounts.length < shape.accounts.length) return undefined;
  if (data.length < 4 + shape.bytes) return undefined;
  const values = shape.fields ? shape.fields(fields, accounts) : {};
  if (!values) return undefined;
  return { type: shape.type, info: { ...namedAccounts(shape.accounts, accounts), ...values } };
}
