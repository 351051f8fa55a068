// The block engine of the sandbox: bundles that land completely or not at all.
//
// `/api/v1/bundles` accepts sendBundle and status queries. `/api/v1/transactions` accepts
// sendTransaction, with `bundleOnly=true` as a bundle of one. A bundle that is sent again while it
// is known gets the same response.

import type { HttpRequest } from "../../gateway/http/types.ts";
import type { ChainApi } from "../chain/types.ts";
import { unknownMethod } from "../rpc/dispatch.ts";
import type { Params, Value } from "../rpc/params.ts";
import { readWire } from "../rpc/wire-params.ts";
import { type Bundle, checkBundle, sendBundleTo } from "./bundle.ts";
import { type PartnerHandler, type PartnerServer, textAnswer } from "./partner-endpoint.ts";
import { readTransaction } from "./swqos.ts";

const bundleTransactionsMax = 5;
const idsMax = 5;
/** Number of recent bundles in memory. */
const bundlesMax = 10_000;
/**
 * A bundle that has not landed after this time cannot land: leaders drop failing bundles
 * immediately.
 */
const pendingSlots = 32n;

interface KnownBundle extends Bundle {
  readonly sentSlot: bigint;
}

interface BlockEngineOptions {
  readonly tipAddresses: readonly string[];
  readonly minimumTipLamports: bigint;
}

export class BlockEngine {
  readonly #chain: ChainApi;
  readonly #tipAddresses: ReadonlySet<string>;
  readonly #minimumTipLamports: bigint;
  /** Bundles by id, oldest first. */
  readonly #bundles = new Map<string, KnownBundle>();

  constructor(chain: ChainApi, { tipAddresses, minimumTipLamports }: BlockEngineOptions) {
    this.#chain = chain;
    this.#tipAddresses = new Set(tipAddresses);
    this.#minimumTipLamports = minimumTipLamports;
  }

  readonly handle: PartnerHandler = (request, endpoint) => {
    if (request.method !== "POST") return textAnswer(405, "expected POST");
    switch (request.path) {
      case "/api/v1/bundles":
      case "/api/v1/getBundleStatuses":
      case "/api/v1/getInflightBundleStatuses":
      case "/api/v1/getTipAccounts":
        return endpoint.answerJsonRpc(request, (method, params) =>
          this.#bundleMethod(method, params, endpoint),
        );
      case "/api/v1/transactions":
        return endpoint.answerJsonRpc(request, (method, params) =>
          this.#sendTransaction(method, params, { request, endpoint }),
        );
      default:
        return textAnswer(404, "not found");
    }
  };

  #bundleMethod(method: string, params: Params, endpoint: PartnerServer): unknown {
    switch (method) {
      case "sendBundle":
        return this.#sendBundle(this.#readBundle(params), endpoint);
      case "getTipAccounts":
        return [...this.#tipAddresses];
      case "getBundleStatuses":
        return this.#withSlot(readIds(params).map((id) => this.#landed(id)));
      case "getInflightBundleStatuses":
        return this.#withSlot(readIds(params).map((id) => this.#inflight(id)));
      default:
        throw unknownMethod(method);
    }
  }

  #readBundle(params: Params): Uint8Array[] {
    params.atMost(2);
    const config = params.config(1);
    const values = params.at(0, "transactions").array(bundleTransactionsMax);
    return values.map((value) => readWire(value, config));
  }

  #sendBundle(wires: readonly Uint8Array[], endpoint: PartnerServer): string {
    const bundle = checkBundle(wires, this.#tipAddresses, this.#minimumTipLamports);
    const { id } = bundle;
    const known = this.#bundles.get(id);
    if (known && this.#stateOf(known) !== "Failed") return id;
    sendBundleTo(this.#chain, wires);
    endpoint.counts.bundles++;
    this.#bundles.delete(id);
    this.#bundles.set(id, { ...bundle, sentSlot: this.#chain.slot("processed") });
    const [oldest] = this.#bundles.keys();
    if (this.#bundles.size > bundlesMax && oldest !== undefined) this.#bundles.delete(oldest);
    return id;
  }

  #sendTransaction(
    method: string,
    params: Params,
    { request, endpoint }: { request: HttpRequest; endpoint: PartnerServer },
  ): string {
    const wire = readTransaction(method, params);
    if (new URLSearchParams(request.query).get("bundleOnly") === "true") {
      const { signatures } = checkBundle([wire], this.#tipAddresses, this.#minimumTipLamports);
      this.#sendBundle([wire], endpoint);
      return signatures[0] ?? "";
    }
    const signature = this.#chain.send(wire);
    endpoint.counts.transactions++;
    return signature;
  }

  #stateOf({ signatures, sentSlot }: KnownBundle): "Landed" | "Pending" | "Failed" {
    if (signatures.every((signature) => this.#chain.status(signature) !== null)) return "Landed";
    return this.#chain.slot("processed") > sentSlot + pendingSlots ? "Failed" : "Pending";
  }

  #landed(id: string): unknown {
    const bundle = this.#bundles.get(id);
    const status = this.#chain.status(bundle?.signatures[0] ?? "");
    if (!bundle || !status || this.#stateOf(bundle) !== "Landed") return null;
    return {
      bundle_id: id,
      transactions: bundle.signatures,
      slot: status.slot,
      confirmation_status: status.confirmationStatus,
      err: { Ok: null },
    };
  }

  #inflight(id: string): unknown {
    const bundle = this.#bundles.get(id);
    if (!bundle) return { bundle_id: id, status: "Invalid", landed_slot: null };
    const state = this.#stateOf(bundle);
    const landed = state === "Landed" ? this.#chain.status(bundle.signatures[0] ?? "") : null;
    return { bundle_id: id, status: state, landed_slot: landed?.slot ?? null };
  }

  #withSlot(value: readonly unknown[]): unknown {
    return { context: { slot: this.#chain.slot("processed") }, value };
  }
}

function readIds(params: Params): string[] {
  params.atMost(1);
  return params
    .at(0, "bundle ids")
    .array(idsMax)
    .map((value: Value) => {
      const text = value.text();
      if (/^[0-9a-f]{64}$/.test(text)) return text;
      throw value.refuse("the id of a bundle: 64 hex characters");
    });
}
