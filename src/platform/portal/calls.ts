// Calls: the methods that the page may call in its session, and the responses to failed calls.
//
// Called by portal.ts for POST /portal/api/call. An allow-list names the gateway methods; they
// run with the session's key, its scopes and its limits. No method submits a transaction.

import { quote, type Reason, retryAfterOf, ShredwayError } from "../../core/errors.ts";
import { isJsonArray, isJsonObject, type Json, readJson } from "../../core/json-rpc/json-text.ts";
import type { HttpResponse } from "../../gateway/http/types.ts";
import { ApiKeyActions, type ApiKeyActionsDependencies, type Holder } from "./api-key-actions.ts";
import { tipPoints } from "./customer-views.ts";
import type { PortalDependencies, PortalGateway } from "./dependencies.ts";
import { jsonAnswer, refusal } from "./responses.ts";

export const gatewayMethods = [
  "getTier",
  "getTierHistory",
  "getRegistrations",
  "getDestinations",
  "addDestination",
  "updateDestination",
  "removeDestination",
  "challengeDestination",
  "proveDestination",
  "getTransactionStatus",
  "getRegions",
  "getTipAccounts",
  "getPublicKeys",
  "registerPublicKey",
  "removePublicKey",
] as const;
const ownMethods = [
  "getKeys",
  "getUnusableKeys",
  "rotateKey",
  "revokeKey",
  "getTipHistory",
] as const;
/** The live feed has the last 24 hours. */
const tipHistoryHours = 7 * 24;

const depthMax = 8;

interface Call {
  readonly method: string;
  /** Parameters in the gateway's format. */
  readonly params: readonly Json[];
}

function readCall(body: string): Call {
  const given = readJson(body, depthMax);
  const method = isJsonObject(given) ? given["method"] : undefined;
  const params = isJsonObject(given) ? (given["params"] ?? []) : [];
  if (typeof method !== "string") {
    throw new ShredwayError(
      "request_invalid",
      `invalid method ${quote(method)}; expected {"method", "params"} with the name of a method`,
    );
  }
  // A single object is treated as a list of one.
  return { method, params: isJsonArray(params) ? params : [params] };
}

/**
 * Returns the response to a failed call. For internal errors it contains only the log reference.
 */
export function refusalOf(thrown: unknown, report: (thrown: unknown) => string): HttpResponse {
  if (!(thrown instanceof ShredwayError) || thrown.row.httpStatus === undefined) {
    return refusal(
      "internal",
      `internal error; ask the operator for log reference ${report(thrown)}`,
    );
  }
  const { reason } = thrown;
  const seconds = retryAfterOf(thrown);
  const headers: Record<string, string> =
    seconds === undefined ? {} : { "retry-after": String(Math.max(1, Math.ceil(seconds))) };
  return refusal(reason, messageFor(reason, thrown, report), { headers });
}

/** Hides details that only the operator may read; the log has them. */
function messageFor(
  reason: Reason,
  thrown: ShredwayError,
  report: (thrown: unknown) => string,
): string {
  if (reason === "rpc_failed")
    return "the Solana node behind this service did not return a valid answer; retry later";
  if (reason !== "store_failed" && reason !== "internal") return thrown.message;
  return `internal error; ask the operator for log reference ${report(thrown)}`;
}

type CallsDependencies = ApiKeyActionsDependencies & Pick<PortalDependencies, "tips">;

export class Calls {
  readonly #gateway: () => PortalGateway;
  readonly #actions: ApiKeyActions;
  readonly #tips: CallsDependencies["tips"];

  constructor(dependencies: CallsDependencies) {
    this.#gateway = dependencies.gateway;
    this.#tips = dependencies.tips;
    this.#actions = new ApiKeyActions(dependencies);
  }

  /** Never rejects for any input of the caller. */
  async answer(holder: Holder, body: string): Promise<HttpResponse> {
    const gateway = this.#gateway();
    try {
      const { method, params } = readCall(body);
      gateway.admit(holder.key, method);
      const result = await this.#run(holder, method, params);
      return jsonAnswer({ result: result ?? null });
    } catch (thrown) {
      return refusalOf(thrown, (fault) => gateway.report(fault));
    }
  }

  #run(holder: Holder, method: string, params: readonly Json[]): unknown {
    switch (method) {
      case "getKeys":
        return this.#actions.list(holder);
      case "getUnusableKeys":
        return this.#actions.unusable(holder);
      case "rotateKey":
        return this.#actions.rotate(holder, params[0]);
      case "revokeKey":
        return this.#actions.revoke(holder, params[0]);
      case "getTipHistory":
        return tipPoints(this.#tips.history, tipHistoryHours);
      default:
        if (gatewayMethods.some((name) => name === method)) {
          return this.#gateway().dispatch(holder.key, method, params);
        }
        throw new ShredwayError(
          "method_unknown",
          `unknown method ${quote(method)}; expected one of ${[...gatewayMethods, ...ownMethods].join(", ")}`,
        );
    }
  }
}
