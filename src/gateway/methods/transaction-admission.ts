// Checks every transaction of a request before anything of the request is submitted.
//
// Called by methods/* and raw-endpoints.ts. It decodes strictly, inspects the bytes, checks the tip and
// verifies signatures off the event loop. It throws ShredwayError and never quotes a transaction.

import { reworded, ShredwayError } from "../../core/errors.ts";
import { describeFailure } from "../../core/transactions/describe-failure.ts";
import type { TransactionFacts } from "../../core/transactions/facts.ts";
import { type Encoding, readTransactionText } from "../../core/transactions/transaction-text.ts";
import { refusalError, tipShortfall } from "../submission/plan.ts";
import type { SubmitMethod } from "../submission/types.ts";
import type { GatewayDependencies, GatewaySettings, SimulationOptions } from "./dependencies.ts";

/** The first duplicate signature, or undefined. */
export function duplicateOf(transactions: readonly TransactionFacts[]): string | undefined {
  const seen = new Set<string>();
  for (const { signature } of transactions) {
    if (seen.has(signature)) return signature;
    seen.add(signature);
  }
  return undefined;
}

type TransactionAdmissionDependencies = Pick<
  GatewayDependencies,
  "base58" | "inspector" | "verifier" | "preflight" | "slot"
>;

export class TransactionAdmission {
  readonly #dependencies: TransactionAdmissionDependencies;
  readonly #settings: GatewaySettings;
  readonly #isBusy: () => boolean;

  /** `isBusy`: whether other submissions wait for the event loop. */
  constructor(
    dependencies: TransactionAdmissionDependencies,
    settings: GatewaySettings,
    isBusy: () => boolean,
  ) {
    this.#dependencies = dependencies;
    this.#settings = settings;
    this.#isBusy = isBusy;
  }

  /** Throws ShredwayError "value_invalid", "transaction_invalid" or "transaction_version". */
  read(what: string, text: string, encoding: Encoding | null): TransactionFacts {
    return readTransactionText(what, text, encoding, {
      inspect: (wire) => this.inspect(what, wire),
      decode: (base58) => this.#dependencies.base58.decode(base58),
    });
  }

  /**
   * Throws ShredwayError "transaction_invalid" or "transaction_version", with `what` before the
   * message.
   */
  inspect(what: string, wire: Uint8Array): TransactionFacts {
    try {
      return this.#dependencies.inspector.inspect(wire);
    } catch (thrown) {
      if (!(thrown instanceof ShredwayError)) throw thrown;
      throw reworded(thrown, `${what}: ${thrown.message}`);
    }
  }

  /**
   * Throws ShredwayError "tip_missing" or "tip_too_low" if the tips of all transactions together
   * are below the method's minimum.
   */
  checkTip(method: SubmitMethod, what: string, transactions: readonly TransactionFacts[]): void {
    const tip = transactions.reduce((sum, { tipLamports }) => sum + tipLamports, 0n);
    const own = this.#settings.minimumTipLamportsByMethod[method];
    const minimum = own ?? this.#settings.minimumTipLamports;
    if (tip >= minimum) return;
    const addresses = this.#settings.regions[0].tipAddresses;
    const owner = own === undefined ? undefined : method;
    const shortfall = tipShortfall(tip, { transactions, minimum, method: owner, addresses });
    throw refusalError(shortfall, `${what}: `);
  }

  /** Whether the signatures of this transaction may be verified on the event loop now. */
  mayVerifyNow(wire: Uint8Array): boolean {
    return this.#dependencies.verifier.mayVerifyNow?.(wire, this.#isBusy()) ?? false;
  }

  /** Throws ShredwayError "signature_invalid", or "overloaded" if the verifier's queue is full. */
  async verify(
    transactions: readonly TransactionFacts[],
    nameOf: (index: number) => string,
  ): Promise<void> {
    const isBusy = this.#isBusy();
    const checks: (boolean | Promise<boolean>)[] = [];
    const settled = () => checks.map((check) => Promise.resolve(check));
    for (const { wire } of transactions) {
      const check = this.#dependencies.verifier.verify(wire, isBusy);
      if (check === null) {
        await Promise.allSettled(settled());
        throw new ShredwayError(
          "overloaded",
          "too many transactions wait for signature verification; retry in 1 s",
          {
            details: { retryAfterSeconds: 1 },
          },
        );
      }
      checks.push(check);
    }
    // A single result that is known already needs no promise.
    const [only = true] = checks;
    const valid =
      checks.length > 1
        ? await Promise.all(settled())
        : [typeof only === "boolean" ? only : await only];
    const wrong = valid.indexOf(false);
    if (wrong < 0) return;
    throw new ShredwayError(
      "signature_invalid",
      `${nameOf(wrong)}: signature verification failed; sign the transaction again`,
      { details: { index: wrong } },
    );
  }

  /** Throws ShredwayError "context_slot_ahead" if the current slot is lower or not known. */
  checkContext(minContextSlot: bigint | null): void {
    const slot = this.#dependencies.slot();
    const contextSlot = slot ?? 0n;
    if (minContextSlot === null || contextSlot >= minContextSlot) return;
    const got =
      slot === null
        ? "but the current slot is not known: solana.rpc is not configured or has not answered; omit minContextSlot"
        : `got ${slot}`;
    throw new ShredwayError(
      "context_slot_ahead",
      `Minimum context slot has not been reached: expected slot ${minContextSlot} or later, ${got}`,
      { details: { contextSlot } },
    );
  }

  /**
   * Throws ShredwayError "preflight_failed", or the error of the node. Without a node it does
   * nothing.
   */
  async preflight(wire: Uint8Array, options: SimulationOptions): Promise<void> {
    const simulation = await this.#dependencies.preflight?.simulate(wire, options);
    if (!simulation || simulation.err === null || simulation.err === undefined) return;
    throw new ShredwayError(
      "preflight_failed",
      `Transaction simulation failed: ${describeFailure(simulation.err)}`,
      { details: simulation },
    );
  }
}
