// Calls: what the page may call for its session, and how refusals look.
//
// Called by portal.ts for POST /portal/api/call. The gateway's methods of an account, by an allow-list,
// with the session's key: the same scopes, the same limits. Nothing that submits a transaction.

import { quote, type Reason, retryAfterOf, ShredwayError } from "../../core/errors.ts";
import { isJsonArray, isJsonObject, type Json, readJson } from "../../core/json-rpc/json-text.ts";
import type { HttpResponse } from "../../gateway/http/types.ts";
import { jsonAnswer, refusal } from "./answers.ts";
import { ApiKeyActions, type ApiKeyActionsDependencies, type Holder } from "./api-key-actions.ts";
import type { Counter } from "./dependencies.ts";

export const gatewayMethods = [
  "getTier",
  "getTierHistory",
  "getRegistrations",
  "getDestinations",
  "addDestination",
  "removeDestination",
  "challengeDestination",
  "proveDestination",
  "getTransactionStatus",
  "getRegions",
  "getTipAccounts",
] as const;
const ownMethods = ["getKeys", "rotateKey", "revokeKey"] as const;

const depthMax = 8;

interface Call {
  readonly method: string;
  /** As the gateway takes them. */
  readonly params: readonly Json[];
}

function readCall(body: string): Call {
  const given = readJson(body, depthMax);
  const method = isJsonObject(given) ? given["method"] : undefined;
  const params = isJsonObject(given) ? (given["params"] ?? []) : [];
  if (typeof method !== "string") {
    throw new ShredwayError(
      "request_invalid",
      `expected {"method", "params"} with the name of a method, got ${quote(method)}`,
    );
  }
  // One object stands for a list with that one.
  return { method, params: isJsonArray(params) ? params : [params] };
}

/** The answer to whoever called in vain; a fault of the program shows its reference only. */
export function refusalOf(thrown: unknown, report: (thrown: unknown) => string): HttpResponse {
  if (!(thrown instanceof ShredwayError) || thrown.row.httpStatus === undefined) {
    return refusal("internal", `a fault of the server, reference ${report(thrown)}`);
  }
  const { reason } = thrown;
  const seconds = retryAfterOf(thrown);
  const headers: Record<string, string> =
    seconds === undefined ? {} : { "retry-after": String(Math.max(1, Math.ceil(seconds))) };
  return refusal(reason, messageFor(reason, thrown, report), { headers });
}

/** What is the operator's business goes to the log. */
function messageFor(
  reason: Reason,
  thrown: ShredwayError,
  report: (thrown: unknown) => string,
): string {
  if (reason === "rpc_failed")
    return "expected an answer of the node behind this service, got none";
  if (reason !== "store_failed" && reason !== "internal") return thrown.message;
  return `the service could not do it, reference ${report(thrown)}`;
}

export class Calls {
  readonly #counter: () => Counter;
  readonly #actions: ApiKeyActions;

  constructor(dependencies: ApiKeyActionsDependencies & { readonly counter: () => Counter }) {
    this.#counter = dependencies.counter;
    this.#actions = new ApiKeyActions(dependencies);
  }

  /** Never rejects for anything that a caller sends. */
  async answer(holder: Holder, body: string): Promise<HttpResponse> {
    const counter = this.#counter();
    try {
      const { method, params } = readCall(body);
      counter.admit(holder.key, method);
      const result = await this.#run(holder, method, params);
      return jsonAnswer({ result: result ?? null });
    } catch (thrown) {
      return refusalOf(thrown, (fault) => counter.report(fault));
    }
  }

  #run(holder: Holder, method: string, params: readonly Json[]): unknown {
    switch (method) {
      case "getKeys":
        return this.#actions.list(holder);
      case "rotateKey":
        return this.#actions.rotate(holder, params[0]);
      case "revokeKey":
        return this.#actions.revoke(holder, params[0]);
      default:
        if (gatewayMethods.some((name) => name === method)) {
          return this.#counter().dispatch(holder.key, method, params);
        }
        throw new ShredwayError(
          "method_unknown",
          `expected one of ${[...gatewayMethods, ...ownMethods].join(", ")}; got ${quote(method)}`,
        );
    }
  }
}
