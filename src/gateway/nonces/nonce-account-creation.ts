// Creates one managed nonce account on the chain, or advances an existing one.
//
// managed-nonces.ts runs it for a row of the store. If the account exists, the database may have
// been lost and a former owner may hold signed transactions for it. It is therefore advanced once
// by a transaction of the service, so that none of those can land. A sent transaction is followed
// until it landed or has expired; only then is another one created. The state in memory is
// optional: a restarted process reads the chain and pays at most one more fee.

import type { Clock } from "../../core/clock.ts";
import { isShredwayError, quote, ShredwayError } from "../../core/errors.ts";
import type { SignedTransaction } from "../../core/transactions/sign-legacy.ts";
import { findNonceAccount, nonceAccountBytes, systemProgram } from "./nonce-account.ts";
import {
  advanceNonce,
  createNonce,
  lamportsPerSignature,
  signaturesOfEach,
} from "./nonce-transactions.ts";
import type { NonceAccountView, NonceNode, Signer } from "./types.ts";

export interface NonceCreationLimits {
  /** Interval between two queries of the account. */
  readonly pollMs: number;
  /** Interval for resending the same bytes. */
  readonly resendMs: number;
  /** Age at which the validity of a blockhash is first queried. */
  readonly firstExpiryCheckMs: number;
  /**
   * Minimum time between two answers that confirm each other; longer than a node may lag behind.
   */
  readonly confirmMs: number;
  /** Creation is given up after so many transactions failed or expired. */
  readonly failuresMax: number;
  /** After giving up, nothing is sent for so long: each attempt costs a fee. */
  readonly restMs: number;
  /** Consecutive failed RPC calls after which an attempt ends. */
  readonly errorsMax: number;
  /** Maximum time between a confirmed transaction and its effect on the account. */
  readonly visibilityMs: number;
  /** Upper bound of the rent-exempt minimum, against a wrong answer of the node. */
  readonly minimumBalanceMax: bigint;
}

export const nonceCreationLimits: NonceCreationLimits = {
  pollMs: 400,
  resendMs: 2_000,
  firstExpiryCheckMs: 30_000,
  confirmMs: 5_000,
  failuresMax: 3,
  restMs: 30_000,
  errorsMax: 5,
  visibilityMs: 30_000,
  minimumBalanceMax: 10_000_000n,
};

export interface NonceAccountCreationDependencies {
  readonly clock: Clock;
  readonly node: NonceNode;
  readonly funding: Signer;
  readonly account: Signer;
  readonly authority: Signer;
  /** Base58. */
  readonly encode: (bytes: Uint8Array) => string;
  /** Whether the store lists the account as ready; another process may have finished it. */
  readonly isReady: () => Promise<boolean>;
  /** Reports the state of the account. `askedMs`: monotonic time of the query. */
  readonly observed: (view: NonceAccountView | null, askedMs: number) => void;
  /** Reports the balance of the funding key, for the operator. */
  readonly fundingObserved: (lamports: bigint) => void;
}

interface Attempt {
  readonly kind: "creation" | "advance";
  readonly wire: Uint8Array;
  readonly signature: string;
  readonly blockhash: string;
  readonly createdMs: number;
  sentMs: number | null;
  /**
   * Times of the first and second answer that the blockhash has expired; null: not yet, or revoked.
   */
  expiredMs: number | null;
  expiryConfirmedMs: number | null;
}

export class NonceAccountCreation {
  readonly #dependencies: NonceAccountCreationDependencies;
  readonly #limits: NonceCreationLimits;
  /** A transaction of the service landed, so no earlier signed transaction can land. */
  #isOwned = false;
  #attempt: Attempt | null = null;
  /** When our transaction landed; the account may not show it yet. */
  #landedMs: number | null = null;
  /** The value that our own advance spends. */
  #spentValue: string | null = null;
  /** Since when the node does not show the account although the store lists it as ready. */
  #missingMs: number | null = null;
  #failures = 0;
  #abandoned: { readonly error: ShredwayError; readonly untilMs: number } | null = null;

  constructor(dependencies: NonceAccountCreationDependencies, limits: NonceCreationLimits) {
    this.#dependencies = dependencies;
    this.#limits = limits;
  }

  /**
   * Settles when the account is usable. A call after a failure resumes. Throws ShredwayError
   * "nonce_failed", "rpc_failed", or "nonce_pending" when `signal` aborts.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { pollMs, errorsMax } = this.#limits;
    if (this.#abandoned && this.#nowMs() < this.#abandoned.untilMs) throw this.#abandoned.error;
    this.#abandoned = null;
    let errors = 0;
    while (!signal.aborted) {
      try {
        if (await this.#step()) return;
        errors = 0;
      } catch (error) {
        const isNode = isShredwayError(error, "rpc_failed");
        if (!isNode || ++errors >= errorsMax) throw error;
      }
      await this.#dependencies.clock.sleep(pollMs, signal);
    }
    const { address } = this.#dependencies.account;
    throw new ShredwayError(
      "nonce_pending",
      `nonce account ${address}: not ready, the service is closing; call again after its restart`,
    );
  }

  /** Runs one step. Returns true when the account is usable. */
  async #step(): Promise<boolean> {
    if (this.#attempt) await this.#follow(this.#attempt);
    if (this.#attempt) return false;
    const { node, account, authority, funding, observed } = this.#dependencies;
    const askedMs = this.#nowMs();
    const [view = null, payer = null] = await node.accounts([account.address, funding.address]);
    this.#dependencies.fundingObserved(payer?.lamports ?? 0n);
    const nonce = findNonceAccount(view);
    if (nonce?.authority === authority.address) {
      this.#missingMs = null;
      if (this.#isOwned && nonce.value === this.#spentValue) {
        this.#checkVisible("advanced");
        return false;
      }
      if (!this.#isOwned && !(await this.#dependencies.isReady())) {
        this.#spentValue = nonce.value;
        await this.#send("advance", 0n, payer);
        return false;
      }
      observed(view, askedMs);
      return true;
    }
    this.#checkEmpty(view);
    if (await this.#mayCreate()) await this.#create(view, payer);
    return false;
  }

  #nowMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / 1_000_000n);
  }

  /** Throws "nonce_failed" if the address holds another kind of account, or another authority's. */
  #checkEmpty(view: NonceAccountView | null): void {
    if (!view || (view.owner === systemProgram && view.data.length === 0)) return;
    const { account, authority } = this.#dependencies;
    const foundAuthority = findNonceAccount(view)?.authority;
    const found =
      foundAuthority === undefined
        ? `${view.data.length} bytes of owner ${quote(view.owner)}`
        : `one of authority ${foundAuthority}`;
    throw new ShredwayError(
      "nonce_failed",
      `nonce account ${account.address}: expected no account, or one with authority ` +
        `${authority.address}, got ${found}`,
    );
  }

  /** Prevents a second creation when the node lags behind and does not show the account yet. */
  async #mayCreate(): Promise<boolean> {
    if (this.#landedMs !== null) {
      this.#checkVisible("created");
      return false;
    }
    if (!(await this.#dependencies.isReady())) return true;
    const nowMs = this.#nowMs();
    this.#missingMs ??= nowMs;
    return nowMs - this.#missingMs >= this.#limits.confirmMs;
  }

  /**
   * Throws "nonce_failed" if the node does not show a confirmed change in time; the creation then
   * restarts.
   */
  #checkVisible(change: string): void {
    const { visibilityMs } = this.#limits;
    const nowMs = this.#nowMs();
    if (nowMs - (this.#landedMs ?? nowMs) < visibilityMs) return;
    this.#landedMs = null;
    this.#isOwned = false;
    const { address } = this.#dependencies.account;
    throw new ShredwayError(
      "nonce_failed",
      `nonce account ${address}: expected the node to show it ${change} within ${visibilityMs} ms, got its ` +
        "state before; check the RPC node",
    );
  }

  async #create(view: NonceAccountView | null, payer: NonceAccountView | null): Promise<void> {
    const minimum = await this.#minimumBalance(nonceAccountBytes);
    const lamports = view?.lamports ?? 0n;
    await this.#send("creation", lamports < minimum ? minimum - lamports : 0n, payer);
  }

  async #minimumBalance(bytes: number): Promise<bigint> {
    const minimum = await this.#dependencies.node.minimumBalance(bytes);
    const { minimumBalanceMax } = this.#limits;
    if (minimum <= minimumBalanceMax) return minimum;
    throw new ShredwayError(
      "rpc_failed",
      `rent of ${bytes} bytes: expected at most ${minimumBalanceMax} lamports, got ${minimum}`,
    );
  }

  /**
   * The key and its balance are the operator's: the caller's message contains neither, the cause has both.
   */
  #fundingError(operatorText: string): ShredwayError {
    return new ShredwayError(
      "nonce_failed",
      `nonce account ${this.#dependencies.account.address}: this service cannot pay for it at present; ` +
        "ask its operator",
      { cause: new Error(operatorText) },
    );
  }

  /** Throws "nonce_failed" unless the funding account can pay `lamports` and the fee. */
  async #checkFunding(lamports: bigint, payer: NonceAccountView | null): Promise<void> {
    const { address } = this.#dependencies.funding;
    if (payer && (payer.owner !== systemProgram || payer.data.length > 0)) {
      throw this.#fundingError(
        `funding key ${address}: expected an account owned by ${systemProgram} without data, got ` +
          `${payer.data.length} bytes owned by ${quote(payer.owner)}`,
      );
    }
    // The chain requires that the payer keeps the rent-exempt minimum.
    const left = await this.#minimumBalance(0);
    const needed = lamports + signaturesOfEach * lamportsPerSignature + left;
    const balance = payer?.lamports ?? 0n;
    if (balance >= needed) return;
    throw this.#fundingError(
      `funding key ${address}: expected at least ${needed} lamports, got ${balance}; transfer SOL to it`,
    );
  }

  async #send(
    kind: Attempt["kind"],
    lamports: bigint,
    payerAccount: NonceAccountView | null,
  ): Promise<void> {
    await this.#checkFunding(lamports, payerAccount);
    const { node, funding: payer, account, authority } = this.#dependencies;
    const blockhash = await node.latestBlockhash();
    const { wire, signature }: SignedTransaction =
      kind === "creation"
        ? createNonce({ payer, account, authority: authority.publicKey, lamports, blockhash })
        : advanceNonce({ payer, account: account.publicKey, authority, blockhash });
    this.#attempt = {
      kind,
      wire,
      signature: this.#dependencies.encode(signature),
      blockhash,
      createdMs: this.#nowMs(),
      sentMs: null,
      expiredMs: null,
      expiryConfirmedMs: null,
    };
    await this.#resend(this.#attempt);
  }

  async #resend(attempt: Attempt): Promise<void> {
    const nowMs = this.#nowMs();
    if (attempt.sentMs !== null && nowMs - attempt.sentMs < this.#limits.resendMs) return;
    attempt.sentMs = nowMs;
    await this.#dependencies.node.sendTransaction(attempt.wire);
  }

  /** Ends the attempt when it landed or can no longer land. */
  async #follow(attempt: Attempt): Promise<void> {
    const { node } = this.#dependencies;
    // The order matters: an absent status counts only if it was queried after the blockhash expired.
    const wasExpired = attempt.expiryConfirmedMs !== null;
    const [status] = await node.signatureStatuses([attempt.signature]);
    if (status) {
      attempt.expiredMs = attempt.expiryConfirmedMs = null;
      if (status.commitment === "processed") return;
      this.#attempt = null;
      this.#landed(attempt, status.err);
    } else if (wasExpired) {
      this.#attempt = null;
      this.#failed(attempt, "no landing before its blockhash expired");
    } else {
      await this.#checkExpiry(attempt);
      if (attempt.expiredMs === null) await this.#resend(attempt);
    }
  }

  #landed(attempt: Attempt, err: unknown): void {
    if (err !== null) this.#failed(attempt, quote(err));
    else {
      this.#isOwned = true;
      this.#landedMs = this.#nowMs();
    }
  }

  #failed({ kind }: Attempt, got: string): void {
    const { failuresMax, restMs } = this.#limits;
    if (++this.#failures < failuresMax) return;
    this.#failures = 0;
    const { address } = this.#dependencies.account;
    const message = `nonce account ${address}: expected its ${kind} to succeed, got ${got}`;
    const error = new ShredwayError("nonce_failed", message);
    this.#abandoned = { error, untilMs: this.#nowMs() + restMs };
    throw error;
  }

  async #checkExpiry(attempt: Attempt): Promise<void> {
    const { firstExpiryCheckMs, confirmMs } = this.#limits;
    if (this.#nowMs() - attempt.createdMs < firstExpiryCheckMs) return;
    const askedMs = this.#nowMs();
    const { isValid } = await this.#dependencies.node.blockhashState(attempt.blockhash);
    if (isValid) attempt.expiredMs = null;
    else if (attempt.expiredMs === null) attempt.expiredMs = this.#nowMs();
    else if (askedMs - attempt.expiredMs >= confirmMs) attempt.expiryConfirmedMs = this.#nowMs();
  }
}
