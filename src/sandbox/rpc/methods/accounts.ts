// Account methods, at the requested commitment.
//
// Called through table.ts.

import type { Account, Commitment } from "../../chain/types.ts";
import { readAccountFilter } from "../account-filters.ts";
import { type AccountFormat, encodeAccount, readAccountFormat } from "../encode-account.ts";
import { commitmentAt, type MethodContext, type MethodTable, withContext } from "../method.ts";
import type { Params } from "../params.ts";

const accountsMax = 100;

function encode(
  { chain }: MethodContext,
  account: Account | null,
  format: AccountFormat,
  commitment: Commitment,
): unknown {
  return account && encodeAccount(account, format, (address) => chain.account(address, commitment));
}

function accountInfo(context: MethodContext, params: Params): unknown {
  const address = params.at(0, "address").pubkey();
  const config = params.config(1);
  const format = readAccountFormat(config);
  const commitment = commitmentAt(context, config);
  const account = context.chain.account(address, commitment);
  return withContext(context, commitment, encode(context, account, format, commitment));
}

function multipleAccounts(context: MethodContext, params: Params): unknown {
  const addresses = params
    .at(0, "addresses")
    .array(accountsMax)
    .map((value) => value.pubkey());
  const config = params.config(1);
  const format = readAccountFormat(config, "base64");
  const commitment = commitmentAt(context, config);
  const accounts = addresses.map((address) =>
    encode(context, context.chain.account(address, commitment), format, commitment),
  );
  return withContext(context, commitment, accounts);
}

function programAccounts(context: MethodContext, params: Params): unknown {
  const program = params.at(0, "program").pubkey();
  const config = params.config(1);
  const format = readAccountFormat(config);
  const passes = readAccountFilter(config);
  const hasContext = config.boolean("withContext");
  const commitment = commitmentAt(context, config);
  const accounts = [...context.chain.programAccounts(program, commitment)]
    .filter(([, account]) => passes(account))
    .map(([pubkey, account]) => ({
      pubkey,
      account: encode(context, account, format, commitment),
    }));
  return hasContext ? withContext(context, commitment, accounts) : accounts;
}

function balance(context: MethodContext, params: Params): unknown {
  const address = params.at(0, "address").pubkey();
  const commitment = commitmentAt(context, params.config(1));
  return withContext(
    context,
    commitment,
    context.chain.account(address, commitment)?.lamports ?? 0n,
  );
}

function minimumBalance(context: MethodContext, params: Params): bigint {
  const bytes = params.at(0, "account size").count(10 * 1024 * 1024);
  commitmentAt(context, params.config(1));
  return context.chain.minimumBalanceForRentExemption(bytes);
}

export const accountMethods: MethodTable = {
  getAccountInfo: { paramsMax: 2, run: accountInfo },
  getMultipleAccounts: { paramsMax: 2, run: multipleAccounts },
  getProgramAccounts: { paramsMax: 2, run: programAccounts },
  getBalance: { paramsMax: 2, run: balance },
  getMinimumBalanceForRentExemption: { paramsMax: 2, run: minimumBalance },
};
