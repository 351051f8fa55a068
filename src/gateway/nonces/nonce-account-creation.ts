// One managed nonce account on its way to being usable: looked for on the chain, made or advanced there.
//
// Run by managed-nonces.ts for a row of the store. An account that is there already may be a former
// owner's, whose database was lost: it is advanced by a transaction of our own that must land, so that
// nothing that was ever signed for it can land afterwards. What was sent is followed until it landed or
// surely never will; only then is another one made. What is remembered here is of no weight: a
// process that starts anew finds on the chain what there is, and at the worst pays a fee again.

import type { Clock } from "../../core/clock.ts";
import { isShredwayError, quote, ShredwayError } from "../../core/errors.ts";
import { findNonceAccount, nonceAccountBytes, systemProgram } from "./nonce-account.ts";
import {
  advanceNonce,
  createNonce,
  lamportsPerSignature,
  type SignedTransaction,
  signaturesOfEach,
} from "./nonce-transactions.ts";
import type { NonceAccountView, NonceNode, Signer } from "./types.ts";

export interface MakingLimits {
  /** Between two looks. */
  readonly lookMs: number;
  /** The same bytes are sent again after so long. */
  readonly sendAgainMs: number;
  /** Blockhashes are not asked about before they are so old. */
  readonly firstAskMs: number;
  /** Between two answers that count as two; longer than a node may be behind. */
  readonly settleMs: number;
  /** Transactions that failed on the chain, or never came there, until it is given up. */
  readonly failuresMax: number;
  /** Then nothing is sent for so long, whoever asks: each one costs its fee. */
  readonly restMs: number;
  /** Answers of the node in a row that failed. */
  readonly errorsMax: number;
  /** So long an account that was made may stay unseen. */
  readonly unseenMs: number;
  /** No nonce account costs more; nodes may say what they like. */
  readonly minimumBalanceMax: bigint;
}

export const makingLimits: MakingLimits = {
  lookMs: 400,
  sendAgainMs: 2_000,
  firstAskMs: 30_000,
  settleMs: 5_000,
  failuresMax: 3,
  restMs: 30_000,
  errorsMax: 5,
  unseenMs: 30_000,
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
  /** The store says that it is in use: by another process meanwhile, or since long. */
  readonly isReady: () => Promise<boolean>;
  /** What was seen of the account, and when it was asked. */
  readonly seen: (view: NonceAccountView | null, askedMs: number) => void;
}

interface Attempt {
  readonly kind: "creation" | "advance";
  readonly wire: Uint8Array;
  readonly signature: string;
  readonly blockhash: string;
  readonly bornMs: number;
  sentMs: number | null;
  /** When its blockhash was found gone, and found so again; null: not, or taken back. */
  goneMs: number | null;
  goneAgainMs: number | null;
}

export class NonceAccountCreation {
  readonly #dependencies: NonceAccountCreationDependencies;
  readonly #limits: MakingLimits;
  /** Nothing that anybody else signed for it can land. */
  #isOurs = false;
  #attempt: Attempt | null = null;
  /** When our own transaction landed that the account does not show yet. */
  #landedMs: number | null = null;
  /** The value that our own advance spends. */
  #spentValue: string | null = null;
  /** Since when it is missing although the store says that it is in use. */
  #missingMs: number | null = null;
  #failures = 0;
  #givenUp: { readonly error: ShredwayError; readonly untilMs: number } | null = null;

  constructor(dependencies: NonceAccountCreationDependencies, limits: MakingLimits) {
    this.#dependencies = dependencies;
    this.#limits = limits;
  }

  /**
   * Settles when the account can be used. May be called again after it failed: it goes on. Throws
   * ShredwayError "nonce_failed", "rpc_failed", or "nonce_pending" when `signal` aborts.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { lookMs, errorsMax } = this.#limits;
    if (this.#givenUp && this.#nowMs() < this.#givenUp.untilMs) throw this.#givenUp.error;
    this.#givenUp = null;
    let errors = 0;
    while (!signal.aborted) {
      try {
        if (await this.#turn()) return;
        errors = 0;
      } catch (error) {
        const isNode = isShredwayError(error, "rpc_failed");
        if (!isNode || ++errors >= errorsMax) throw error;
      }
      await this.#dependencies.clock.sleep(lookMs, signal);
    }
    const { address } = this.#dependencies.account;
    throw new ShredwayError("nonce_pending", `nonce account ${address}: the service is closing`);
  }

  /** One step; true: it can be used. */
  async #turn(): Promise<boolean> {
    if (this.#attempt) await this.#follow(this.#attempt);
    if (this.#attempt) return false;
    const { node, account, authority, funding, seen } = this.#dependencies;
    const askedMs = this.#nowMs();
    const [view = null, payer = null] = await node.accounts([account.address, funding.address]);
    const nonce = findNonceAccount(view);
    if (nonce?.authority === authority.address) {
      this.#missingMs = null;
      if (this.#isOurs && nonce.value === this.#spentValue) {
        this.#checkUnseen("advanced");
        return false;
      }
      if (!this.#isOurs && !(await this.#dependencies.isReady())) {
        this.#spentValue = nonce.value;
        await this.#send("advance", 0n, payer);
        return false;
      }
      seen(view, askedMs);
      return true;
    }
    this.#checkEmpty(view);
    if (await this.#mayCreate()) await this.#create(view, payer);
    return false;
  }

  #nowMs(): number {
    return Number(this.#dependencies.clock.monotonicNs() / 1_000_000n);
  }

  /** Throws "nonce_failed" for an account that cannot become ours any more. */
  #checkEmpty(view: NonceAccountView | null): void {
    if (!view || (view.owner === systemProgram && view.data.length === 0)) return;
    const { account, authority } = this.#dependencies;
    const authorityThere = findNonceAccount(view)?.authority;
    const there =
      authorityThere === undefined
        ? `${view.data.length} bytes of owner ${quote(view.owner)}`
        : `one of authority ${authorityThere}`;
    throw new ShredwayError(
      "nonce_failed",
      `nonce account ${account.address}: expected none yet, or one of authority ` +
        `${authority.address}, got ${there}`,
    );
  }

  /** A node that is behind may miss what is there. */
  async #mayCreate(): Promise<boolean> {
    if (this.#landedMs !== null) {
      this.#checkUnseen("made");
      return false;
    }
    if (!(await this.#dependencies.isReady())) return true;
    const nowMs = this.#nowMs();
    this.#missingMs ??= nowMs;
    return nowMs - this.#missingMs >= this.#limits.settleMs;
  }

  /** Throws "nonce_failed" when the node should have seen it by now; then all begins anew. */
  #checkUnseen(what: string): void {
    const { unseenMs } = this.#limits;
    const nowMs = this.#nowMs();
    if (nowMs - (this.#landedMs ?? nowMs) < unseenMs) return;
    this.#landedMs = null;
    this.#isOurs = false;
    const { address } = this.#dependencies.account;
    throw new ShredwayError(
      "nonce_failed",
      `nonce account ${address}: expected the node to see it ${what} within ${unseenMs} ms, got it ` +
        "as it was before",
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

  /** Throws "nonce_failed" unless the funding key can pay `lamports` and the fee. */
  async #checkFunding(lamports: bigint, payer: NonceAccountView | null): Promise<void> {
    const { address } = this.#dependencies.funding;
    if (payer && (payer.owner !== systemProgram || payer.data.length > 0)) {
      throw new ShredwayError(
        "nonce_failed",
        `funding key ${address}: expected a plain account of ${systemProgram}, got ` +
          `${payer.data.length} bytes of owner ${quote(payer.owner)}`,
      );
    }
    // What is left must be nothing or the minimum of an account.
    const left = await this.#minimumBalance(0);
    const needed = lamports + signaturesOfEach * lamportsPerSignature + left;
    const balance = payer?.lamports ?? 0n;
    if (balance >= needed) return;
    throw new ShredwayError(
      "nonce_failed",
      `funding key ${address}: expected at least ${needed} lamports, got ${balance}`,
      { details: { address, balanceLamports: balance, neededLamports: needed } },
    );
  }

  async #send(
    kind: Attempt["kind"],
    lamports: bigint,
    payerThere: NonceAccountView | null,
  ): Promise<void> {
    await this.#checkFunding(lamports, payerThere);
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
      bornMs: this.#nowMs(),
      sentMs: null,
      goneMs: null,
      goneAgainMs: null,
    };
    await this.#sendAgain(this.#attempt);
  }

  async #sendAgain(attempt: Attempt): Promise<void> {
    const nowMs = this.#nowMs();
    if (attempt.sentMs !== null && nowMs - attempt.sentMs < this.#limits.sendAgainMs) return;
    attempt.sentMs = nowMs;
    await this.#dependencies.node.sendTransaction(attempt.wire);
  }

  /** Ends the attempt when it landed or cannot land any more. */
  async #follow(attempt: Attempt): Promise<void> {
    const { node } = this.#dependencies;
    // In this order: an absence counts when it was asked for after the blockhash was found gone.
    const wasGone = attempt.goneAgainMs !== null;
    const [status] = await node.signatureStatuses([attempt.signature]);
    if (status) {
      attempt.goneMs = attempt.goneAgainMs = null;
      if (status.commitment === "processed") return;
      this.#attempt = null;
      this.#landed(attempt, status.err);
    } else if (wasGone) {
      this.#attempt = null;
      this.#failed(attempt, "never landed");
    } else {
      await this.#askBlockhash(attempt);
      if (attempt.goneMs === null) await this.#sendAgain(attempt);
    }
  }

  #landed(attempt: Attempt, err: unknown): void {
    if (err !== null) this.#failed(attempt, quote(err));
    else {
      this.#isOurs = true;
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
    this.#givenUp = { error, untilMs: this.#nowMs() + restMs };
    throw error;
  }

  async #askBlockhash(attempt: Attempt): Promise<void> {
    const { firstAskMs, settleMs } = this.#limits;
    if (this.#nowMs() - attempt.bornMs < firstAskMs) return;
    const askedMs = this.#nowMs();
    if (await this.#dependencies.node.isBlockhashValid(attempt.blockhash)) attempt.goneMs = null;
    else if (attempt.goneMs === null) attempt.goneMs = this.#nowMs();
    else if (askedMs - attempt.goneMs >= settleMs) attempt.goneAgainMs = this.#nowMs();
  }
}
