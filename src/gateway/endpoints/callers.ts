// Authenticates requests: API key and client address.
//
// Called for every request and every WebSocket. The query or one of four headers may contain the
// key; several keys must be equal. Unknown, revoked, expired and disallowed keys get the same
// response, so that callers cannot distinguish them. Keys are never logged or quoted.

import type { AddressRange } from "../../core/addresses/addresses.ts";
import { callerOf, peerAddress } from "../../core/addresses/caller.ts";
import type { Clock } from "../../core/clock.ts";
import { ShredwayError } from "../../core/errors.ts";
import { AuthFailureLimiter } from "../accounts/auth-failure-limiter.ts";
import { scopeMissing } from "../accounts/missing-scope.ts";
import type { ApiKey, Scope } from "../accounts/types.ts";
import { clientAddress, isFromProxy } from "../http/client-address.ts";
import type { HttpHead, HttpResponse, RefusalShape } from "../http/types.ts";
import type { GatewayDependencies, Keys } from "../methods/dependencies.ts";
import { answerOf, refusalAnswer } from "./answers.ts";
import { Query } from "./query.ts";

/** Longer texts are rejected without hashing. */
const keyCharactersMax = 256;
const keyLocations =
  "query api-key, header api_key, api-key, Authorization: Bearer or Basic, or x-jito-auth";

const invalidKey = "invalid API key: unknown, expired, revoked, or not allowed from this address";
const invalidPublicKey =
  "invalid public key: expected the Ed25519 key of a certificate that an account has registered for tpu, " +
  "and an address that its API key allows";

function tooManyFailures(seconds: number): string {
  return `too many invalid API keys from this address; retry in ${seconds} s`;
}

/** The sender of a request, the options in its URL, and the time of its arrival. */
export interface RequestCaller {
  /** null: the request contains no key. */
  readonly key: ApiKey | null;
  readonly query: Query;
  readonly isBlockEngine: boolean;
  readonly receivedNs: bigint;
}

/** `key` null: the request contains no key. */
type Found =
  | { readonly key: ApiKey | null; readonly refusal?: undefined }
  | { readonly key?: undefined; readonly refusal: HttpResponse };

/** As `Found`, with the problem of an invalid key. */
type Keyed =
  | { readonly key: ApiKey | null; readonly problem?: undefined }
  | { readonly key?: undefined; readonly problem: string };

export function unauthorized(problem = "missing API key"): ShredwayError {
  return new ShredwayError(
    "unauthorized",
    `${problem}; expected a valid API key (${keyLocations})`,
  );
}

/** All keys in the places where callers may put them. */
function keysIn(head: HttpHead, query: Query, isBlockEngine: boolean): string[] {
  const texts = query.all("api-key");
  if (isBlockEngine) texts.push(...query.all("uuid"));
  for (const name of ["api_key", "api-key", "x-jito-auth"]) {
    const value = head.header(name);
    if (value) texts.push(value);
  }
  const authorization = head.header("authorization");
  const bearer = authorization && /^bearer +(\S+)$/i.exec(authorization)?.[1];
  if (bearer) texts.push(bearer);
  const basic = authorization && /^basic +(\S+)$/i.exec(authorization)?.[1];
  if (basic) texts.push(...basicKeys(basic));
  return texts;
}

/** The key as user name or password, as in https://KEY:@host/ (RFC 7617). */
function basicKeys(credentials: string): string[] {
  const text = Buffer.from(credentials, "base64").toString("utf8");
  const colon = text.indexOf(":");
  const parts = colon < 0 ? [text] : [text.slice(0, colon), text.slice(colon + 1)];
  return parts.filter((part) => part !== "");
}

/** An address that presents a key: the transport's peer, and the client behind it. */
interface Origin {
  /** Text of the peer's address. */
  readonly remoteAddress: string;
  /** The client's address, 16 bytes. */
  readonly address: () => Uint8Array;
}

interface CallersOptions {
  readonly keys: Keys;
  readonly publicKeys: GatewayDependencies["publicKeys"];
  readonly clock: Clock;
  /** Read at every request, because a reload changes it. */
  readonly settings: { readonly trustedProxies: readonly AddressRange[] };
}

export class Callers {
  readonly #keys: Keys;
  readonly #publicKeys: CallersOptions["publicKeys"];
  readonly #clock: Clock;
  readonly #settings: CallersOptions["settings"];
  readonly #authFailures = new AuthFailureLimiter();
  /** Keys by the repeated head of a connection, so that they are not searched and hashed again. */
  readonly #known = new WeakMap<NonNullable<HttpHead["fastPath"]>, ApiKey>();
  /**
   * Invalid keys that `hasKey` has counted, with the seconds of the block, until `find` takes them. All
   * copies of a head have the same function `header`.
   */
  readonly #counted = new WeakMap<HttpHead["header"], number>();
  /** Wall time of the last request with each key, by id. */
  readonly #lastUses = new Map<string, bigint>();

  constructor({ keys, publicKeys, clock, settings }: CallersOptions) {
    this.#keys = keys;
    this.#publicKeys = publicKeys;
    this.#clock = clock;
    this.#settings = settings;
  }

  /** Client address, 16 bytes: the TCP peer's, or the one that trusted proxies report. */
  addressOf(head: HttpHead): Uint8Array {
    return clientAddress(head, this.#settings.trustedProxies).address;
  }

  /** Whether the TCP peer is a trusted proxy. */
  isProxied(head: HttpHead): boolean {
    return isFromProxy(head, this.#settings.trustedProxies);
  }

  /** Returns the request's key, null without a key, or the refusal of an invalid key. */
  find(
    head: HttpHead,
    query: Query,
    isBlockEngine: boolean,
    refuse: RefusalShape = refusalAnswer,
  ): Found {
    const keyed = this.#search(head, query, isBlockEngine);
    if (keyed.problem === undefined) return keyed;
    return { refusal: this.#refuse(head, keyed.problem, refuse) };
  }

  /** The caller of a request that was just received, or the refusal. */
  of(
    request: HttpHead,
    isBlockEngine: boolean,
    refuse?: RefusalShape,
  ): RequestCaller | HttpResponse {
    const query = Query.of(request.query);
    const { key, refusal } = this.find(request, query, isBlockEngine, refuse);
    return refusal ?? { key, query, isBlockEngine, receivedNs: this.#clock.nowNs() };
  }

  /**
   * Whether the request has a valid key, before its body is read. It counts an invalid one, because the
   * request may be refused before `find`; `find` then does not count it again.
   */
  hasKey(head: HttpHead, query: Query, isBlockEngine: boolean): boolean {
    const { key, problem } = this.#search(head, query, isBlockEngine);
    if (problem !== undefined) {
      this.#counted.set(head.header, this.#countFailure(this.addressOf(head)));
    }
    return Boolean(key);
  }

  /** The request's key. Counts its use, but no failure. */
  #search(head: HttpHead, query: Query, isBlockEngine: boolean): Keyed {
    const known = this.#knownKey(head);
    if (known) {
      this.used(known.id);
      return { key: known };
    }
    const texts = keysIn(head, query, isBlockEngine);
    const [text] = texts;
    if (text === undefined) return { key: null };
    if (texts.some((other) => other !== text)) {
      return { problem: "the request contains different API keys" };
    }
    const key = this.#keyFor(text, this.#originOf(head));
    if (!key) return { problem: invalidKey };
    this.used(key.id);
    if (head.fastPath) this.#known.set(head.fastPath, key);
    return { key };
  }

  /** The key of an earlier request with the same head on the same connection, if it still applies. */
  #knownKey(head: HttpHead): ApiKey | null {
    const key = head.fastPath && this.#known.get(head.fastPath);
    if (!key || this.#keys.get(key.id, this.#clock.nowNs()) !== key) return null;
    return this.#mayUse(key, this.#originOf(head)) ? key : null;
  }

  /** Records a request on a connection whose key was checked before. */
  used(keyId: string): void {
    this.#lastUses.set(keyId, this.#clock.nowNs());
  }

  /** Wall time of the last request with the key since the start; null: none. */
  lastUseNs(keyId: string): bigint | null {
    return this.#lastUses.get(keyId) ?? null;
  }

  /** Checks a key from another place, such as a form. */
  check(
    head: HttpHead,
    text: string,
    refuse: RefusalShape,
  ):
    | { readonly key: ApiKey; readonly refusal?: undefined }
    | { readonly key?: undefined; readonly refusal: HttpResponse } {
    const key = this.#keyFor(text, this.#originOf(head));
    return key ? { key } : { refusal: this.#refuse(head, invalidKey, refuse) };
  }

  /**
   * Checks a key that came without HTTP, from `remoteAddress`. Failures count together with those over
   * HTTP. Throws ShredwayError "unauthorized" or "rate_limited".
   */
  authenticate(remoteAddress: string, text: string): ApiKey {
    const find = (origin: Origin): ApiKey | null => this.#keyFor(text, origin);
    return this.#authenticate(remoteAddress, find, invalidKey);
  }

  /**
   * Finds the API key for which a registered public key acts. null: the client has no Ed25519 key. Counts
   * failures and throws like `authenticate`.
   */
  authenticatePublicKey(remoteAddress: string, publicKey: Uint8Array | null): ApiKey {
    const find = (origin: Origin): ApiKey | null => {
      const key = publicKey && this.#publicKeys.find("tpu", publicKey);
      return key && this.#mayUse(key, origin) ? key : null;
    };
    return this.#authenticate(remoteAddress, find, invalidPublicKey);
  }

  #authenticate(
    remoteAddress: string,
    find: (origin: Origin) => ApiKey | null,
    problem: string,
  ): ApiKey {
    const address = peerAddress(remoteAddress);
    const key = find({ remoteAddress, address: () => address });
    if (!key) {
      const seconds = this.#countFailure(address);
      if (seconds === 0) throw new ShredwayError("unauthorized", problem);
      throw new ShredwayError("rate_limited", tooManyFailures(seconds));
    }
    this.used(key.id);
    return key;
  }

  #originOf(head: HttpHead): Origin {
    return { remoteAddress: head.remoteAddress, address: () => this.addressOf(head) };
  }

  #keyFor(text: string, origin: Origin): ApiKey | null {
    const key = text.length > keyCharactersMax ? null : this.#keys.find(text, this.#clock.nowNs());
    return key && this.#mayUse(key, origin) ? key : null;
  }

  /**
   * For open WebSockets: the key with that id in its present state. null: it has ended, has none of the scopes, or is
   * not allowed from this address. Counts neither a use nor a failure.
   */
  current(keyId: string, head: HttpHead, wanted: readonly Scope[]): ApiKey | null {
    const key = this.#keys.get(keyId, this.#clock.nowNs());
    if (!key || !wanted.some((scope) => key.scopes.includes(scope))) return null;
    return this.#mayUse(key, this.#originOf(head)) ? key : null;
  }

  /** For WebSockets: returns a key with one of `scopes`, or the refusal. */
  authorise(head: HttpHead, scopes: readonly Scope[]): { readonly key: ApiKey } | HttpResponse {
    const { key, refusal } = this.find(head, new Query(head.query), false);
    if (refusal) return refusal;
    if (!key) return answerOf(unauthorized());
    if (scopes.some((scope) => key.scopes.includes(scope))) return { key };
    return answerOf(scopeMissing("this WebSocket", key, scopes));
  }

  /** Also false for a blocked address, unless the key was used from there before. */
  #mayUse(key: ApiKey, origin: Origin): boolean {
    const isForwarded = this.#settings.trustedProxies.length > 0;
    if (key.allowedRanges.length > 0 && !this.#keys.allows(key, origin.address())) return false;
    const address = isForwarded ? callerOf(origin.address()) : origin.remoteAddress;
    if (this.#authFailures.isWatching && !this.#authFailures.wasUsed(key.id, address)) {
      const group = callerOf(origin.address());
      if (this.#authFailures.blockedSeconds(group, this.#clock.monotonicNs()) > 0) return false;
    }
    this.#authFailures.used(key.id, address);
    return true;
  }

  /** Counts an invalid key, unless its address is blocked. Returns the seconds of the block, or 0. */
  #countFailure(address: Uint8Array): number {
    const group = callerOf(address);
    const nowNs = this.#clock.monotonicNs();
    const seconds = this.#authFailures.blockedSeconds(group, nowNs);
    if (seconds === 0) this.#authFailures.failed(group, nowNs);
    return seconds;
  }

  /** The seconds of the block if `hasKey` has counted the failure of this request; otherwise undefined. */
  #takeCounted({ header }: HttpHead): number | undefined {
    const seconds = this.#counted.get(header);
    this.#counted.delete(header);
    return seconds;
  }

  #refuse(head: HttpHead, problem: string, refuse: RefusalShape): HttpResponse {
    const seconds = this.#takeCounted(head) ?? this.#countFailure(this.addressOf(head));
    if (seconds > 0) {
      return refuse("rate_limited", tooManyFailures(seconds), {
        headers: { "retry-after": String(seconds) },
        details: { retryAfterSeconds: seconds },
      });
    }
    const { message } = unauthorized(problem);
    return refuse("unauthorized", message);
  }
}
