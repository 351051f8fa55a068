// Shared by the responses of /tip_floor and /tip_floor/history: parameters, amounts, headers, refusals.
//
// Used by tip-floor.ts and tip-history.ts.

import type { TipPercentileFields, WrittenInteger } from "../../client/responses.ts";
import type { Clock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import type { TipSnapshot } from "../../tips/tip-types.ts";
import type { HttpHead, HttpResponse } from "../http/types.ts";
import type { LimitVerdict } from "../methods/dependencies.ts";
import type { StatementSigner } from "../receipts/types.ts";
import { documentHeaders, plainRefusal } from "./answers.ts";
import { checkNames, keyName, Query, type UriParameter, uriChoice, uriSwitch } from "./query.ts";

export type Format = "lamports" | "sol";
const formatText = "unit of the amounts; sol: as block engines return them";
export const formatParameter = uriChoice<Format>("format", ["lamports", "sol"], formatText);
/** On paths of block engines. */
export const solFormatParameter = uriChoice<Format>("format", ["sol", "lamports"], formatText);

export const signedParameter = uriSwitch(
  "signed",
  "adds newest_slot to the response, and a signature in the header x-shredway-signature",
);
const signatureHeader = "x-shredway-signature";
/** Values change every 15 minutes; caches must not serve an old one for long. */
const cacheControl = "public, max-age=5";

/** Dependencies of both handlers of tips. */
export interface TipAnswerDependencies {
  readonly clock: Clock;
  readonly signer: Pick<StatementSigner, "signDetached">;
  /** The current slot; null: unknown. */
  readonly slot: () => bigint | null;
  /** 16 bytes. */
  readonly addressOf: (head: HttpHead) => Uint8Array;
}

/** A body with its detached signature. */
export interface SignedText {
  readonly body: string;
  readonly signature: string;
}

interface TipQuery {
  readonly isRead: true;
  readonly format: Format;
  readonly isSigned: boolean;
  readonly query: Query;
}

interface RefusedQuery {
  readonly isRead: false;
  readonly refusal: HttpResponse;
}

/** A key is permitted and ignored: the statistics are public. */
const names = [keyName, formatParameter.name, signedParameter.name] as const;

export function readTipQuery(head: HttpHead, format = formatParameter): TipQuery | RefusedQuery {
  return readTipQueryWith(head, format, { names: [], read: () => ({}) });
}

/** `read` may throw ShredwayError "value_invalid". */
export function readTipQueryWith<T extends object>(
  head: HttpHead,
  formatOf: UriParameter<Format>,
  more: { readonly names: readonly string[]; readonly read: (query: Query) => T },
): (TipQuery & T) | RefusedQuery {
  const query = new Query(head.query);
  try {
    checkNames(query, [...names, ...more.names]);
    const format = formatOf.read(query);
    const isSigned = signedParameter.read(query);
    return { isRead: true, format, isSigned, query, ...more.read(query) };
  } catch (thrown) {
    return { isRead: false, refusal: plainRefusal("value_invalid", messageOf(thrown)) };
  }
}

/** SOL: exact to 15 digits, like the values of block engines. */
export function amountIn(format: Format, lamports: bigint): WrittenInteger {
  return format === "sol" ? Number(lamports) / 1e9 : lamports;
}

export function percentileFields(
  { p25, p50, p75, p95, p99 }: TipSnapshot["percentiles"],
  format: Format,
): TipPercentileFields<WrittenInteger> {
  return {
    landed_tips_25th_percentile: amountIn(format, p25),
    landed_tips_50th_percentile: amountIn(format, p50),
    landed_tips_75th_percentile: amountIn(format, p75),
    landed_tips_95th_percentile: amountIn(format, p95),
    landed_tips_99th_percentile: amountIn(format, p99),
  };
}

export function tipAnswer(
  head: HttpHead,
  verdict: LimitVerdict,
  { body, signature }: Pick<SignedText, "body"> & Partial<SignedText>,
): HttpResponse {
  return {
    status: 200,
    headers: {
      ...documentHeaders(head),
      "cache-control": cacheControl,
      ...limitHeaders(verdict),
      ...(signature !== undefined && { [signatureHeader]: signature }),
    },
    body,
  };
}

/** `unit`: what is counted per address, such as "requests per second". */
export function tooMany(unit: string, verdict: LimitVerdict): HttpResponse {
  const seconds = String(verdict.retryAfterSeconds);
  const message = `rate limit exceeded: ${verdict.limit} ${unit} from an address; retry in ${seconds} s`;
  const headers = { "retry-after": seconds, ...limitHeaders(verdict) };
  return plainRefusal("rate_limited", message, { headers });
}

function limitHeaders({ limit, remaining, resetSeconds }: LimitVerdict): Record<string, string> {
  return {
    "x-ratelimit-limit": String(limit),
    "x-ratelimit-remaining": String(remaining),
    "x-ratelimit-reset": String(resetSeconds),
  };
}
