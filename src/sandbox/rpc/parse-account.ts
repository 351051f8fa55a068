// Accounts in the encoding jsonParsed: nonces, token accounts and mints, lookup tables.
//
// Called by encode-account.ts. Returns undefined for all others, which are then encoded as base64,
// as in the node. Programs write these bytes, so all lengths are checked.

import type { Account } from "../chain/types.ts";
import { Fields } from "./bytes.ts";
import { lookupTableProgramId, systemProgramId, tokenPrograms } from "./programs.ts";
import {
  readMint,
  readMultisig,
  readTokenAccount,
  type TokenAccount,
  tokenAccountBytes,
  uiTokenAmount,
} from "./token-layout.ts";

interface ParsedAccount {
  readonly program: string;
  readonly parsed: { readonly type: string; readonly info: object };
  readonly space: number;
}

/** Reads another account: token amounts require the decimals of their mint. */
export type ReadAccount = (address: string) => Account | null;

const nonceBytes = 80;
const lookupTableMetaBytes = 56;
/** A Token-2022 account whose only extension is the one that every associated account has. */
const immutableOwnerBytes = 170;
const immutableOwnerType = 7;

function parseNonce(data: Uint8Array): ParsedAccount["parsed"] | undefined {
  if (data.length !== nonceBytes) return undefined;
  const fields = new Fields(data);
  if (fields.u32(0) > 1 || fields.u32(4) !== 1) return undefined;
  const feeCalculator = { lamportsPerSignature: fields.u64(72).toString() };
  const info = { authority: fields.key(8), blockhash: fields.key(40), feeCalculator };
  return { type: "initialized", info };
}

function parseLookupTable(data: Uint8Array): ParsedAccount["parsed"] | undefined {
  const addressBytes = data.length - lookupTableMetaBytes;
  if (addressBytes < 0 || addressBytes % 32 !== 0) return undefined;
  const fields = new Fields(data);
  if (fields.u32(0) !== 1) return undefined;
  return {
    type: "lookupTable",
    info: {
      deactivationSlot: fields.u64(4).toString(),
      lastExtendedSlot: fields.u64(12).toString(),
      lastExtendedSlotStartIndex: fields.u8(20),
      ...(fields.u8(21) === 1 ? { authority: fields.key(22) } : {}),
      addresses: Array.from({ length: addressBytes / 32 }, (_, index) =>
        fields.key(lookupTableMetaBytes + 32 * index),
      ),
    },
  };
}

function tokenAccountInfo(token: TokenAccount, decimals: number): object {
  return {
    mint: token.mint,
    owner: token.owner,
    tokenAmount: uiTokenAmount(token.amount, decimals),
    ...(token.delegate === null ? {} : { delegate: token.delegate }),
    state: token.state,
    isNative: token.nativeReserve !== null,
    ...(token.nativeReserve === null
      ? {}
      : { rentExemptReserve: uiTokenAmount(token.nativeReserve, decimals) }),
    ...(token.delegatedAmount === 0n
      ? {}
      : { delegatedAmount: uiTokenAmount(token.delegatedAmount, decimals) }),
    ...(token.closeAuthority === null ? {} : { closeAuthority: token.closeAuthority }),
  };
}

/** The extensions, if all of them can be shown; undefined: at least one cannot. */
function extensionsOf(data: Uint8Array): { extensions?: object[] } | undefined {
  if (data.length <= tokenAccountBytes) return {};
  const isImmutableOwner = data.length === immutableOwnerBytes && data[166] === immutableOwnerType;
  return isImmutableOwner ? { extensions: [{ extension: "immutableOwner" }] } : undefined;
}

function parseToken(data: Uint8Array, read: ReadAccount): ParsedAccount["parsed"] | undefined {
  const multisig = readMultisig(data);
  if (multisig) {
    const { required, valid, signers } = multisig;
    const info = {
      numRequiredSigners: required,
      numValidSigners: valid,
      isInitialized: true,
      signers,
    };
    return { type: "multisig", info };
  }
  const extensions = extensionsOf(data);
  if (!extensions) return undefined;
  const mint = readMint(data);
  if (mint) {
    const { supply, ...info } = mint;
    return {
      type: "mint",
      info: { ...info, supply: supply.toString(), isInitialized: true, ...extensions },
    };
  }
  const token = readTokenAccount(data);
  const tokenMint = token && read(token.mint);
  const decimals = tokenMint && readMint(tokenMint.data)?.decimals;
  if (!token || decimals === undefined || decimals === null) return undefined;
  return { type: "account", info: { ...tokenAccountInfo(token, decimals), ...extensions } };
}

/** undefined: the account cannot be parsed. */
export function parseAccount(account: Account, read: ReadAccount): ParsedAccount | undefined {
  const { data, owner } = account;
  const space = data.length;
  const tokenProgram = tokenPrograms.get(owner);
  if (tokenProgram !== undefined) {
    const parsed = parseToken(data, read);
    return parsed && { program: tokenProgram, parsed, space };
  }
  if (owner === systemProgramId) {
    const parsed = parseNonce(data);
    return parsed && { program: "nonce", parsed, space };
  }
  if (owner === lookupTableProgramId) {
    const parsed = parseLookupTable(data);
    return parsed && { program: "address-lookup-table", parsed, space };
  }
  return undefined;
}
