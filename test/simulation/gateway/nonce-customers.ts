// The customers' use of nonces: they ask for values, send pairs and single transactions with them, and advance
// nonces without the service.

import { createHash } from "node:crypto";
import { base58 } from "@scure/base";
import { Violation } from "../relay-checks.ts";
import { accounts } from "../scenario.ts";
import { Wallet } from "../tips.ts";
import { isRecord, type SenderCalls } from "./answers.ts";
import type { Call, PairDefect } from "./call-rules.ts";
import type { Chain } from "./chain.ts";
import { keyText } from "./created-keys.ts";
import type { KeyKind } from "./key-kinds.ts";
import { firstNonces, hexOf, type NonceStates } from "./nonce-accounts.ts";
import type { HandedNonce, NonceChecks } from "./nonce-checks.ts";
import { type NonceAccountChoice, type NonceAction, ownNonces } from "./nonce-scenario.ts";
import {
  minimumTip,
  type SentTransaction,
  type TransactionChoice,
  type Transactions,
} from "./transactions.ts";

type Event<K extends NonceAction["kind"]> = Extract<NonceAction, { readonly kind: K }>;

interface NonceCustomersOptions {
  readonly chain: Chain;
  readonly transactions: Transactions;
  readonly checks: NonceChecks;
  readonly calls: SenderCalls;
  readonly nowMs: () => number;
  readonly guard: (action: () => void) => void;
}

function addressOf(name: string): Buffer {
  return createHash("sha256").update(name).digest();
}

function ownAddress(customer: number, number: number): Buffer {
  return addressOf(`nonce account ${customer} ${number}`);
}

/** The accounts that customers have before the run; their wallets are the authorities. */
export function ownNonceAccounts(transactions: Transactions): NonceStates {
  return firstNonces(
    [...accounts.keys()].flatMap((customer) =>
      Array.from({ length: ownNonces }, (_, number) => ({
        address: ownAddress(customer, number),
        authority: transactions.walletOf(customer).address,
      })),
    ),
  );
}

function bytesOf(hex: string): Uint8Array {
  return Buffer.from(hex, "hex");
}

/** Throws Violation. */
function handedOf(result: unknown): HandedNonce {
  const { nonce, nonceAccount, nonceAuthority } = isRecord(result) ? result : {};
  const [account = "", authority = "", value = ""] = [nonceAccount, nonceAuthority, nonce].map(
    (text) => hexOf(base58.decode(String(text))),
  );
  if (value.length !== 64) throw new Violation("a nonce has its form", JSON.stringify(result));
  return { account, authority, value };
}

export class NonceCustomers {
  readonly #options: NonceCustomersOptions;
  /** The last values that customers know, by customer and account. */
  readonly #known = new Map<string, HandedNonce>();
  readonly #stranger = new Wallet("stranger");

  constructor(options: NonceCustomersOptions) {
    this.#options = options;
  }

  async getNonce({ customer, key, account }: Event<"get nonce">): Promise<void> {
    await this.#ask(customer, key, account);
  }

  async sendPair(event: Event<"send pair">): Promise<void> {
    const { customer, key, account, isFromMemory } = event;
    const memory = this.#known.get(nameOf(customer, account));
    const nonce = isFromMemory && memory ? memory : await this.#ask(customer, "own", account);
    if (!nonce) return;
    const managedFor = account.kind === "managed" ? customer : null;
    const transactions = this.#signPair(event, nonce);
    if (!transactions) return;
    const { defect } = event;
    const pair = { account: nonce.account, value: nonce.value, managedFor, defect };
    const call: Call = { customer, key, method: "sendIdeal", transactions, maxRetries: null, pair };
    await this.#options.calls.submit(call);
  }

  sendDurable({ customer, choice, transaction }: Event<"send durable">): void {
    const signed = this.#signOwn(customer, choice, transaction);
    const call = { customer, key: "own", method: "sendTransaction", maxRetries: null } as const;
    if (signed) void this.#options.calls.submit({ ...call, transactions: [signed] });
  }

  advance({ customer, choice }: Event<"advance nonce">): void {
    const transaction = { tip: minimumTip, fails: false, isForged: false };
    const signed = this.#signOwn(customer, choice, transaction);
    if (signed) this.#options.chain.arrive([signed], false);
  }

  /** With the value in the newest block; null: the account does not exist. */
  #signOwn(customer: number, number: number, choice: TransactionChoice): SentTransaction | null {
    const { chain, transactions } = this.#options;
    const account = ownAddress(customer, number);
    const state = chain.noncesAt(chain.tip).get(hexOf(account));
    const authority = transactions.walletOf(customer).address;
    if (!state) return null;
    return transactions.sign(customer, choice, bytesOf(state.value), { account, authority });
  }

  /** null: the chain has no block yet. */
  #signPair(
    { customer, transactions: choices, defect }: Event<"send pair">,
    nonce: HandedNonce,
  ): readonly SentTransaction[] | null {
    const { chain } = this.#options;
    if (!chain.tip) return null;
    const lifetime = bytesOf(defect === "recent blockhash" ? chain.tip.hash : nonce.value);
    const signed = choices.map((choice, i) => {
      const isOther = defect === "other value" && i === 1;
      const isFree = defect === "no price" && i === 1;
      return this.#signWith(
        customer,
        { ...choice, ...(isFree && { unitPrice: 0 }) },
        { nonce, lifetime: isOther ? addressOf("other value") : lifetime, defect },
      );
    });
    const [first] = signed;
    return defect === "same twice" && first ? [first, first] : signed;
  }

  #signWith(
    customer: number,
    choice: TransactionChoice,
    how: { nonce: HandedNonce; lifetime: Uint8Array; defect: PairDefect | null },
  ): SentTransaction {
    const signer = this.#stranger;
    const account = bytesOf(how.nonce.account);
    const nonce =
      how.defect === "other authority"
        ? { account, authority: signer.address, signer }
        : { account, authority: bytesOf(how.nonce.authority) };
    return this.#options.transactions.sign(customer, choice, how.lifetime, nonce);
  }

  /** null: the service was killed, or refused. */
  async #ask(
    customer: number,
    key: KeyKind,
    account: NonceAccountChoice,
  ): Promise<HandedNonce | null> {
    const { checks, calls, guard, nowMs } = this.#options;
    const isManaged = account.kind === "managed";
    const beganMs = nowMs();
    const param = isManaged ? keyText(customer, key) : base58.encode(addressIn(account));
    const answer = await calls.call(customer, key, "getNonce", [param ?? ""]);
    let handed: HandedNonce | null = null;
    if (!answer) return null;
    guard(() => {
      if (!("result" in answer)) {
        const isAllowed = key === "own";
        const expected = key === "reader" ? "scope_missing" : "unauthorized";
        const managedFor = isManaged ? customer : null;
        const { reason } = answer;
        if (isAllowed)
          checks.refused(reason, { managedFor, isMissing: account.kind === "missing" }, beganMs);
        else if (reason !== expected)
          throw new Violation("a refusal is true", `getNonce: ${reason}, expected ${expected}`);
        return;
      }
      if (key !== "own") throw new Violation("an invalid call is refused", `getNonce: key ${key}`);
      handed = handedOf(answer.result);
      checks.handed(handed, isManaged ? customer : null, beganMs);
      this.#known.set(nameOf(customer, account), handed);
    });
    return handed;
  }
}

function addressIn(account: Exclude<NonceAccountChoice, { kind: "managed" }>): Buffer {
  return account.kind === "own"
    ? ownAddress(account.customer, account.number)
    : addressOf("no account");
}

function nameOf(customer: number, account: NonceAccountChoice): string {
  return `${customer} ${account.kind === "own" ? `${account.customer} ${account.number}` : account.kind}`;
}
