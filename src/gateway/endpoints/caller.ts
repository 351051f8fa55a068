// Who asks: the key of a request and the address that it came from.
//
// Called for every request and every WebSocket. A key may stand in the query or in one of four
// headers; several must be the same. Unknown, revoked, expired and misplaced keys get one and the
// same answer, so that nothing can be learned by trying. Keys are never logged and never quoted.

import type { AddressRange } from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import { AuthFailureLimiter } from "../accounts/auth-failure-limiter.ts";
import { callerOf } from "../accounts/rate-limits.ts";
import type { ApiKey, Scope } from "../accounts/types.ts";
import { clientAddress, isFromProxy } from "../http/client-address.ts";
import type { HttpHead, HttpResponse } from "../http/types.ts";
import type { Keys } from "../methods/dependencies.ts";
import { answerOf, type RefusalShape, refusalAnswer } from "./answers.ts";
import { Query } from "./query.ts";

/** Longer ones are no keys. */
const keyCharactersMax = 256;
const places = "query api-key, header api_key, api-key, Authorization: Bearer or x-jito-auth";

/** key null: none was shown. */
type Found =
  | { readonly key: ApiKey | null; readonly refusal?: undefined }
  | { readonly key?: undefined; readonly refusal: HttpResponse };

export function unauthorized(got: string): ShredwayError {
  return new ShredwayError("unauthorized", `expected a valid API key (${places}), got ${got}`);
}

export function scopeMissing(what: string, key: ApiKey, wanted: readonly Scope[]): ShredwayError {
  return new ShredwayError(
    "scope_missing",
    `${what}: expected a key with the scope ${wanted.join(" or ")}, got ${key.scopes.join(", ")}`,
  );
}

/** The keys that `head` shows, where callers may put them. */
function shownKeys(head: HttpHead, query: Query, isBlockEngine: boolean): string[] {
  const shown = query.all("api-key");
  if (isBlockEngine) shown.push(...query.all("uuid"));
  for (const name of ["api_key", "api-key", "x-jito-auth"]) {
    const value = head.header(name);
    if (value) shown.push(value);
  }
  const authorization = head.header("authorization");
  const bearer = authorization && /^bearer +(\S+)$/i.exec(authorization)?.[1];
  if (bearer) shown.push(bearer);
  return shown;
}

interface CallersOptions {
  readonly keys: Keys;
  readonly clock: Clock;
  /** Read at every request: a reload changes them. */
  readonly settings: { readonly trustedProxies: readonly AddressRange[] };
}

export class Callers {
  readonly #keys: Keys;
  readonly #clock: Clock;
  readonly #settings: CallersOptions["settings"];
  readonly #attempts = new AuthFailureLimiter();

  constructor({ keys, clock, settings }: CallersOptions) {
    this.#keys = keys;
    this.#clock = clock;
    this.#settings = settings;
  }

  /** 16 bytes: of the TCP peer, or what trusted proxies say. */
  addressOf(head: HttpHead): Uint8Array {
    return clientAddress(head, this.#settings.trustedProxies).address;
  }

  /** Whether the TCP peer is one of the proxies whose headers are believed. */
  isProxied(head: HttpHead): boolean {
    return isFromProxy(head, this.#settings.trustedProxies);
  }

  /** The key, none, or the answer to somebody with a wrong one. */
  find(
    head: HttpHead,
    query: Query,
    isBlockEngine: boolean,
    refuse: RefusalShape = refusalAnswer,
  ): Found {
    const shown = shownKeys(head, query, isBlockEngine);
    const [text] = shown;
    if (text === undefined) return { key: null };
    if (shown.some((other) => other !== text)) {
      return { refusal: this.#refuse(head, "several that differ", refuse) };
    }
    return this.check(head, text, refuse);
  }

  /** The same of a key that was shown elsewhere, such as in a form. */
  check(
    head: HttpHead,
    text: string,
    refuse: RefusalShape,
  ):
    | { readonly key: ApiKey; readonly refusal?: undefined }
    | { readonly key?: undefined; readonly refusal: HttpResponse } {
    const key = text.length > keyCharactersMax ? null : this.#keys.find(text, this.#clock.nowNs());
    if (!key || !this.#mayUse(key, head)) {
      return { refusal: this.#refuse(head, "one that is not valid here", refuse) };
    }
    return { key };
  }

  /** For WebSockets: a key with one of `scopes`, or the answer that refuses. */
  authorise(head: HttpHead, scopes: readonly Scope[]): { readonly key: ApiKey } | HttpResponse {
    const { key, refusal } = this.find(head, new Query(head.query), false);
    if (refusal) return refusal;
    if (!key) return answerOf(unauthorized("none"));
    if (scopes.some((scope) => key.scopes.includes(scope))) return { key };
    return answerOf(scopeMissing("this WebSocket", key, scopes));
  }

  /** False also for an address that guesses, unless the key was used from there before. */
  #mayUse(key: ApiKey, head: HttpHead): boolean {
    const isForwarded = this.#settings.trustedProxies.length > 0;
    if (key.allowedRanges.length > 0 && !this.#keys.allows(key, this.addressOf(head))) return false;
    const address = isForwarded ? callerOf(this.addressOf(head)) : head.remoteAddress;
    if (this.#attempts.isWatching && !this.#attempts.wasUsed(key.id, address)) {
      const group = callerOf(this.addressOf(head));
      if (this.#attempts.blockedSeconds(group, this.#clock.monotonicNs()) > 0) return false;
    }
    this.#attempts.used(key.id, address);
    return true;
  }

  #refuse(head: HttpHead, got: string, refuse: RefusalShape): HttpResponse {
    const group = callerOf(this.addressOf(head));
    const nowNs = this.#clock.monotonicNs();
    const seconds = this.#attempts.blockedSeconds(group, nowNs);
    if (seconds > 0) {
      return refuse(
        "rate_limited",
        `too many invalid API keys from this address; retry in ${seconds} s`,
        {
          headers: { "retry-after": String(seconds) },
          details: { retryAfterSeconds: seconds },
        },
      );
    }
    this.#attempts.failed(group, nowNs);
    const { message } = unauthorized(got);
    return refuse("unauthorized", message, { headers: { "www-authenticate": "Bearer" } });
  }
}
