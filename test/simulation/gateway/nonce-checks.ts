// The checks of nonces and pairs: which values the service hands out, and which pairs it accepts.
//
// They compare with the nonce accounts of the chain. A node may lag, and the service may know a value for
// `knownMs` longer.

import { Violation } from "../relay-checks.ts";
import type { SimulatedDisk } from "../simulated-disk.ts";
import { sentForMs } from "./account-record.ts";
import type { Call, PairNonce } from "./call-rules.ts";
import type { Chain } from "./chain.ts";
import type { SimulatedNode } from "./node.ts";
import type { SubmissionChecks } from "./submission-checks.ts";

/** A value is not older than that, apart from the time of the call. */
const knownMs = 2_200;
/** Calls share a question to the node that began so long before. */
const questionMs = 2_500;
/** The creation of an account gives up after several questions that the node does not answer. */
const creationMs = 14_000;
/** A managed account is ready so long after it was asked for, if cluster, node and disk work. */
const readyMs = 40_000;
/** The creation of an account gives up after so many transactions that did not land. */
const failuresMax = 3;

/** The result of getNonce, in hex. */
export interface HandedNonce {
  readonly account: string;
  readonly authority: string;
  readonly value: string;
}

interface KnownPair {
  readonly call: Call;
  readonly nonce: PairNonce;
  acknowledgedMs: number | null;
}

interface NonceChecksOptions {
  readonly chain: Chain;
  readonly node: SimulatedNode;
  readonly disk: SimulatedDisk;
  readonly submissions: SubmissionChecks;
  readonly nowMs: () => number;
}

export class NonceChecks {
  readonly #options: NonceChecksOptions;
  readonly #pairs: KnownPair[] = [];
  /** Managed accounts by the customer whose key has them. */
  readonly #managed = new Map<number, string>();
  /** Since when customers wait for their managed accounts while everything works. */
  readonly #waitingMs = new Map<number, number>();

  constructor(options: NonceChecksOptions) {
    this.#options = options;
  }

  /** The service runs again. */
  restarted(): void {
    this.#waitingMs.clear();
  }

  /** getNonce returned this. `managedFor`: the customer whose key asked for its own account. */
  handed(nonce: HandedNonce, managedFor: number | null, beganMs: number): void {
    const { account, authority, value } = nonce;
    const { chain } = this.#options;
    if (managedFor !== null) this.#checkManaged(managedFor, account);
    const state = chain.noncesAt(chain.confirmed).get(account);
    if (state?.authority !== authority)
      throw new Violation("a nonce is true", `${account}: authority ${authority}`);
    if (!chain.wasNonceVisible(account, value, beganMs - knownMs))
      throw new Violation("a nonce is true", `${account}: ${value} is outdated`);
  }

  #checkManaged(customer: number, account: string): void {
    this.#waitingMs.delete(customer);
    const known = this.#managed.get(customer);
    const isOther = known !== undefined && known !== account;
    const isShared = [...this.#managed].some(([other, of]) => other !== customer && of === account);
    if (isOther || isShared)
      throw new Violation("a managed nonce belongs to one key", `${account} of ${customer}`);
    this.#managed.set(customer, account);
  }

  /** getNonce was refused. `isMissing`: no account has the address. */
  refused(
    reason: string,
    { managedFor, isMissing }: { readonly managedFor: number | null; readonly isMissing: boolean },
    beganMs: number,
  ): void {
    const { node, disk } = this.#options;
    const isDown = node.wasDown(beganMs - (managedFor === null ? questionMs : creationMs));
    const isTrue =
      (reason === "rpc_failed" && isDown) ||
      (reason === "nonce_invalid" && isMissing) ||
      (reason === "nonce_failed" && managedFor !== null && this.#mayHaveFailed(managedFor)) ||
      (reason === "store_failed" && managedFor !== null && disk.hasFailedLately) ||
      (reason === "nonce_pending" && managedFor !== null && this.#mayBePending(managedFor));
    if (!isTrue) throw new Violation("a refusal is true", `getNonce: ${reason}`);
  }

  /** Its account is not known before it is ready. No other customer has it. */
  #mayHaveFailed(customer: number): boolean {
    const others = [...this.#managed].filter(([other]) => other !== customer);
    const taken = new Set(others.map(([, account]) => account));
    return this.#options.node
      .accountsWithFailures(failuresMax)
      .some((account) => !taken.has(account));
  }

  #mayBePending(customer: number): boolean {
    const { chain, node, disk, nowMs } = this.#options;
    const sinceTroubleMs = nowMs() - creationMs;
    const isTroubled =
      node.wasDown(sinceTroubleMs) || chain.wasStopped(sinceTroubleMs) || disk.hasFailedLately;
    const sinceMs = isTroubled ? nowMs() : (this.#waitingMs.get(customer) ?? nowMs());
    this.#waitingMs.set(customer, sinceMs);
    return nowMs() - sinceMs <= readyMs;
  }

  /** A customer sends a pair with which nothing is wrong. */
  submitted(call: Call, nonce: PairNonce): KnownPair {
    const known = this.#pairs.find((pair) => isSame(pair.call, call));
    const pair = known ?? { call, nonce, acknowledgedMs: null };
    if (!known) this.#pairs.push(pair);
    return pair;
  }

  /** Other acknowledged pairs with this value that are still open and sent. */
  inUse(pair: KnownPair): KnownPair[] {
    const sinceMs = this.#options.nowMs() - sentForMs;
    return this.#othersOf(pair).filter(
      ({ call, acknowledgedMs }) =>
        acknowledgedMs !== null &&
        acknowledgedMs >= sinceMs &&
        call.transactions.some((transaction) => this.#options.submissions.isOpen(transaction)),
    );
  }

  /** Whether another pair with this value may be open. */
  mayBeInUse(pair: KnownPair): boolean {
    return this.#othersOf(pair).some(({ call }) =>
      call.transactions.some((each) => this.#options.submissions.mayBeOpen(each)),
    );
  }

  /** The service accepted the pair. `before`: the pairs that were in use when the call began. */
  accepted(pair: KnownPair, before: readonly KnownPair[], beganMs: number): void {
    const { account, value } = pair.nonce;
    const { chain, nowMs } = this.#options;
    const after = new Set(this.inUse(pair));
    if (before.some((other) => after.has(other)))
      throw new Violation("a nonce value is for one pair at a time", `${account}: ${value}`);
    if (!chain.wasNonceVisible(account, value, beganMs - knownMs))
      throw new Violation("an outdated nonce is refused", `${account}: ${value}`);
    pair.acknowledgedMs ??= nowMs();
  }

  /** Whether the state of the world explains this refusal of a valid pair. */
  mayBeRefused(pair: KnownPair, reason: string, beganMs: number): boolean {
    const { chain, node } = this.#options;
    const { account, value } = pair.nonce;
    if (reason === "rpc_failed") return node.wasDown(beganMs - questionMs);
    if (reason === "nonce_stale")
      return chain.wasOtherNonceVisible(account, value, beganMs - knownMs);
    if (reason === "nonce_in_use") return this.mayBeInUse(pair);
    return reason === "no_route" && this.#isSpent(account, value);
  }

  /** Whether a transaction landed with this value. */
  #isSpent(account: string, value: string): boolean {
    const { chain, submissions } = this.#options;
    return [...submissions.records].some(
      ({ transaction: { signature, nonce, blockhash } }) =>
        nonce?.account === account &&
        blockhash === value &&
        chain.find(signature, chain.confirmed) !== undefined,
    );
  }

  #othersOf(pair: KnownPair): KnownPair[] {
    const { account, value } = pair.nonce;
    return this.#pairs.filter(
      ({ call, nonce }) =>
        nonce.account === account && nonce.value === value && !isSame(call, pair.call),
    );
  }

  /** Called once in each slot: at most one transaction of each pair is in the blocks of the chain. */
  check(): void {
    const { chain } = this.#options;
    for (const { call } of this.#pairs) {
      const landed = call.transactions.filter(
        ({ signature }) => chain.find(signature, chain.confirmed) !== undefined,
      );
      const [first, second] = landed;
      if (first && second)
        throw new Violation(
          "at most one transaction of a pair lands",
          `${first.signature} and ${second.signature}`,
        );
    }
  }
}

function isSame(a: Call, b: Call): boolean {
  return a.transactions.every(({ signature }) =>
    b.transactions.some((other) => other.signature === signature),
  );
}
