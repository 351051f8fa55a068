// Types and constructors of the gateway's methods.
//
// methods/* implements them, methods/method-table.ts collects them, request-context.ts calls them,
// description/* documents them. The parameters are declared once: the same shapes parse and
// document a call.

import { type Reason, reasons } from "../../core/errors.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { ApiKey, Scope } from "../accounts/types.ts";
import type { JsonSchema, Sample, SchemaOf } from "../schema/json-schema.ts";
import {
  type ArgsOf,
  type ParamDocument,
  type Params,
  paramDocuments,
  paramReader,
} from "../schema/params.ts";
import type { Ingress } from "../submission/types.ts";
import type { ConcurrencyLimit } from "./concurrency-limit.ts";
import type { GatewayDependencies, GatewaySettings } from "./dependencies.ts";
import type { FastCall } from "./fast-call.ts";
import type { TransactionAdmission } from "./transaction-admission.ts";

/** Options in the URL. */
export interface UriOptions {
  readonly mevProtect: boolean;
  readonly swqosOnly: boolean;
  readonly revertProtection: boolean;
  /** Option of block engines: send the transaction as its own bundle. */
  readonly bundleOnly: boolean;
  /** In the URL or a header: the response to a submission contains a signed receipt. */
  readonly receipt: boolean;
}

/** Everything that all methods share. */
export interface MethodContext {
  readonly dependencies: GatewayDependencies;
  readonly settings: GatewaySettings;
  readonly admission: TransactionAdmission;
  readonly submissionLimit: ConcurrencyLimit;
  /** Returns 0, 1, 2, …, to rotate lists from call to call. */
  readonly nextTurn: () => number;
  /** The OpenRPC document of this configuration. */
  readonly descriptions: { openRpc(): { readonly text: string } };
}

export interface Call extends Omit<MethodContext, "submissionLimit" | "descriptions"> {
  readonly key: ApiKey;
  readonly uri: UriOptions;
  /** True below /api/v1: results have the format of block engines. */
  readonly isBlockEngine: boolean;
  /** Receive time of the request (wall time). */
  readonly receivedNs: bigint;
  readonly ingress?: Ingress | undefined;
  /** Absent: the request did not come by a connection of the fast path. */
  readonly fastPath?: FastCall | undefined;
  /**
   * Counts further calls of the key, because each transaction counts as a call. Throws
   * ShredwayError "rate_limited".
   */
  countCalls(count: number): void;
  /** Sets the header retry-after, for methods with limits of their own. */
  setRetryAfter(seconds: number): void;
  /** Sets the header x-bundle-id. */
  setBundleId(id: string): void;
}

/** Documentation of a method. */
export interface MethodDocument {
  /** One sentence on one line. */
  readonly summary: string;
  readonly description?: string;
  /** Parameters in positional order. */
  readonly params: readonly ParamDocument[];
  readonly result: MethodResult;
  /** All reasons with which a call can fail. */
  readonly errors: readonly Reason[];
  readonly example: MethodExample;
}

interface MethodResult {
  readonly name: string;
  readonly schema: JsonSchema;
}

/** An example call and its result. */
interface MethodExample {
  readonly params: readonly Sample[];
  readonly result: Sample;
}

export interface KeyedMethod extends MethodDocument {
  /** The key needs one of these scopes. */
  readonly scopes: readonly [Scope, ...Scope[]];
  /** Parses the parameters and runs the method. Throws or rejects with ShredwayError. */
  readonly run: (call: Call, params: readonly Json[]) => unknown;
}

/** A method that needs no key. */
export interface OpenMethod extends MethodDocument {
  readonly scopes: readonly [];
  /** Calls count against the limit of the key, or of the address if there is no key. */
  readonly isCounted?: boolean;
  readonly answer: (context: MethodContext, params: readonly Json[]) => unknown;
}

export type Method = KeyedMethod | OpenMethod;
export type MethodTable = Readonly<Record<string, Method>>;

/** Errors that any method can return. */
const callErrors = [
  "json_invalid",
  "request_invalid",
  "value_invalid",
  "unauthorized",
  "rate_limited",
  "body_too_large",
  "http_closing",
  "internal",
] as const satisfies readonly Reason[];

function withCallErrors(own: readonly Reason[]): readonly Reason[] {
  const named = new Set<Reason>([...own, ...callErrors]);
  return reasons.filter((reason) => named.has(reason));
}

interface MethodOptions<P extends Params, R> extends Omit<MethodDocument, "params"> {
  readonly scopes: KeyedMethod["scopes"];
  readonly params: P;
  readonly result: MethodResult & { readonly schema: SchemaOf<R> };
  readonly example: MethodExample & { readonly result: NoInfer<R> };
  /** Parameters that are parsed before the others; default: none. */
  readonly readingOrder?: readonly (keyof P & string)[];
  /**
   * Throws if this service does not support the method; called before the parameters are parsed.
   */
  readonly available?: (call: Call) => unknown;
  /** `given`: all parameters unparsed, including undeclared ones. */
  readonly run: (
    call: Call,
    args: ArgsOf<P>,
    given: readonly Json[],
  ) => NoInfer<R> | Promise<NoInfer<R>>;
}

/**
 * Creates a method. `errors` lists its own errors; the errors of every call are added. Result and
 * example must have the type of the result's schema.
 */
export function method<const P extends Params, R>(choice: MethodOptions<P, R>): KeyedMethod {
  const { params, readingOrder, available, run, errors, ...document } = choice;
  const read = paramReader(params, readingOrder);
  return {
    ...document,
    params: paramDocuments(params),
    errors: withCallErrors([...errors, "scope_missing"]),
    run: (call, given) => {
      available?.(call);
      return run(call, read(given), given);
    },
  };
}

export function openMethod(choice: Omit<OpenMethod, "scopes" | "params">): OpenMethod {
  return { ...choice, scopes: [], params: [], errors: withCallErrors(choice.errors) };
}

/** An open method with parameters, whose calls are counted. */
export function countedOpenMethod<const P extends Params>(
  choice: Omit<OpenMethod, "scopes" | "params" | "isCounted" | "answer"> & {
    readonly params: P;
    readonly run: (context: MethodContext, args: ArgsOf<P>) => unknown;
  },
): OpenMethod {
  const { params, run, errors, ...document } = choice;
  const read = paramReader(params);
  return {
    ...document,
    scopes: [],
    isCounted: true,
    params: paramDocuments(params),
    errors: withCallErrors(errors),
    answer: (context, given) => run(context, read(given)),
  };
}
