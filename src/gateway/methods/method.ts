// What a method of the gateway is, what it may ask, and what it says of itself.
//
// Implemented by methods/*, gathered by methods/table.ts, called by request-context.ts, described by
// description/*. What a method takes is declared once: the same shapes read a call and describe it.

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
import type { ConcurrencyLimit } from "./concurrency-limit.ts";
import type { GatewayDependencies, GatewaySettings } from "./dependencies.ts";
import type { TransactionAdmission } from "./transaction-admission.ts";

/** Switches that come with the URL. */
export interface UriOptions {
  readonly mevProtect: boolean;
  readonly swqosOnly: boolean;
  readonly revertProtection: boolean;
  /** Of block engines: a transaction as a bundle of its own. */
  readonly bundleOnly: boolean;
}

/** Of the whole gateway. */
export interface MethodContext {
  readonly dependencies: GatewayDependencies;
  readonly settings: GatewaySettings;
  readonly admission: TransactionAdmission;
  readonly room: ConcurrencyLimit;
  /** 0, 1, 2, …: for answers that begin elsewhere each time. */
  readonly nextTurn: () => number;
  /** The OpenRPC document of this configuration. */
  readonly descriptions: { openRpc(): { readonly text: string } };
}

export interface Call extends Omit<MethodContext, "room" | "descriptions"> {
  readonly key: ApiKey;
  readonly uri: UriOptions;
  /** Below /api/v1: answers as block engines give them. */
  readonly isBlockEngine: boolean;
  /** When the request came; wall time. */
  readonly receivedNs: bigint;
  /** Counts so many further calls of the key: each transaction is one. Throws "rate_limited". */
  takeMore(count: number): void;
  /** Goes into the header retry-after: for a method with limits of its own. */
  tellRetryAfter(seconds: number): void;
  /** Goes into the header x-bundle-id. */
  tellBundleId(id: string): void;
}

/** As documents tell it. */
export interface MethodDocument {
  /** One line. */
  readonly summary: string;
  readonly description?: string;
  /** In the order of their positions. */
  readonly params: readonly ParamDocument[];
  readonly result: MethodResult;
  /** Every reason that a call may be refused with. */
  readonly errors: readonly Reason[];
  readonly example: MethodExample;
}

interface MethodResult {
  readonly name: string;
  readonly schema: JsonSchema;
}

/** A call and what it may be answered. */
interface MethodExample {
  readonly params: readonly Sample[];
  readonly result: Sample;
}

export interface KeyedMethod extends MethodDocument {
  /** One of them is enough. */
  readonly scopes: readonly [Scope, ...Scope[]];
  /** Reads the parameters, then works. Throws or rejects with ShredwayError. */
  readonly run: (call: Call, params: readonly Json[]) => unknown;
}

/** No key is needed, and no call is counted. */
export interface OpenMethod extends MethodDocument {
  readonly scopes: readonly [];
  readonly answer: (context: MethodContext) => unknown;
}

export type Method = KeyedMethod | OpenMethod;
export type MethodTable = Readonly<Record<string, Method>>;

/** Of every call, whatever its method is. */
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

interface MethodChoice<P extends Params, R> extends Omit<MethodDocument, "params"> {
  readonly scopes: KeyedMethod["scopes"];
  readonly params: P;
  readonly result: MethodResult & { readonly schema: SchemaOf<R> };
  readonly example: MethodExample & { readonly result: NoInfer<R> };
  /** Parameters that are read before the others; default: none. */
  readonly readingOrder?: readonly (keyof P & string)[];
  /** Throws when this service does not have what the method asks; before any parameter is looked at. */
  readonly available?: (call: Call) => unknown;
  /** `given`: every parameter as it came, those beyond the declared ones too. */
  readonly run: (
    call: Call,
    args: ArgsOf<P>,
    given: readonly Json[],
  ) => NoInfer<R> | Promise<NoInfer<R>>;
}

/**
 * `errors`: those of its own; those of every call are added. What it returns and its example have the type
 * of the result's schema.
 */
export function method<const P extends Params, R>(choice: MethodChoice<P, R>): KeyedMethod {
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
