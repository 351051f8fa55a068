// Methods for token accounts of SPL Token and Token-2022.
//
// Called through table.ts. There is no index by owner: every call reads all accounts of a program,
// and a sandbox has few.

import type { Pubkey } from "../../../core/primitives.ts";
import type { Account, Commitment } from "../../chain/types.ts";
import { encodeAccount, readAccountFormat } from "../encode-account.ts";
import { commitmentAt, type MethodContext, type MethodTable, withContext } from "../method.ts";
import { type Config, invalidParams, type Params } from "../params.ts";
import { tokenPrograms } from "../programs.ts";
import {
  type Mint,
  readMint,
  readTokenAccount,
  type TokenAccount,
  uiTokenAmount,
} from "../token-layout.ts";

const largestMax = 20;

function mintAt(
  { chain }: MethodContext,
  address: string,
  commitment: Commitment,
): { mint: Mint; program: string } {
  const account = chain.account(address, commitment);
  const mint = account && tokenPrograms.has(account.owner) && readMint(account.data);
  if (mint) return { mint, program: account.owner };
  throw invalidParams("mint", "the address of a mint", address);
}

interface TokenRow {
  readonly address: string;
  readonly account: Account;
  readonly token: TokenAccount;
}

function tokenAccounts(
  { chain }: MethodContext,
  program: string,
  commitment: Commitment,
): TokenRow[] {
  return [...chain.programAccounts(program, commitment)].flatMap(([address, account]) => {
    const token = readTokenAccount(account.data);
    return token ? [{ address, account, token }] : [];
  });
}

/** The filter by mint or by program; exactly one of them must be given. */
function selection(
  context: MethodContext,
  filter: Config,
  commitment: Commitment,
): { program: string; mint?: Pubkey } {
  const program = filter.field("programId").or(null, (value) => value.pubkey());
  const mint = filter.field("mint").or(null, (value) => value.pubkey());
  if ((program === null) === (mint === null)) {
    throw invalidParams("filter", "either mint or programId", filter.names);
  }
  if (mint !== null) return { program: mintAt(context, mint, commitment).program, mint };
  if (program !== null && tokenPrograms.has(program)) return { program };
  throw invalidParams("filter.programId", "a token program", program);
}

function accountsBy(field: "owner" | "delegate") {
  return (context: MethodContext, params: Params): unknown => {
    const holder = params.at(0, field).pubkey();
    const filter = params.at(1, "filter").object();
    const config = params.config(2);
    const format = readAccountFormat(config);
    const commitment = commitmentAt(context, config);
    const { program, mint } = selection(context, filter, commitment);
    const rows = tokenAccounts(context, program, commitment)
      .filter(({ token }) => token[field] === holder && (!mint || token.mint === mint))
      .map(({ address, account }) => ({
        pubkey: address,
        account: encodeAccount(account, format, (other) =>
          context.chain.account(other, commitment),
        ),
      }));
    return withContext(context, commitment, rows);
  };
}

function accountBalance(context: MethodContext, params: Params): unknown {
  const address = params.at(0, "token account").pubkey();
  const commitment = commitmentAt(context, params.config(1));
  const account = context.chain.account(address, commitment);
  const token = account && tokenPrograms.has(account.owner) && readTokenAccount(account.data);
  if (!token) throw invalidParams("token account", "the address of a token account", address);
  const { mint } = mintAt(context, token.mint, commitment);
  return withContext(context, commitment, uiTokenAmount(token.amount, mint.decimals));
}

function supply(context: MethodContext, params: Params): unknown {
  const address = params.at(0, "mint").pubkey();
  const commitment = commitmentAt(context, params.config(1));
  const { mint } = mintAt(context, address, commitment);
  return withContext(context, commitment, uiTokenAmount(mint.supply, mint.decimals));
}

function largestAccounts(context: MethodContext, params: Params): unknown {
  const address = params.at(0, "mint").pubkey();
  const commitment = commitmentAt(context, params.config(1));
  const { mint, program } = mintAt(context, address, commitment);
  const largest = tokenAccounts(context, program, commitment)
    .filter(({ token }) => token.mint === address)
    .toSorted((a, b) => Number(b.token.amount - a.token.amount))
    .slice(0, largestMax)
    .map((row) => ({ address: row.address, ...uiTokenAmount(row.token.amount, mint.decimals) }));
  return withContext(context, commitment, largest);
}

export const tokenMethods: MethodTable = {
  getTokenAccountsByOwner: { paramsMax: 3, run: accountsBy("owner") },
  getTokenAccountsByDelegate: { paramsMax: 3, run: accountsBy("delegate") },
  getTokenAccountBalance: { paramsMax: 2, run: accountBalance },
  getTokenSupply: { paramsMax: 2, run: supply },
  getTokenLargestAccounts: { paramsMax: 2, run: largestAccounts },
};
