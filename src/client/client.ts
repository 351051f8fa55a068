// ShredwayClient: the methods of the service that stock Solana clients lack, typed.
//
// For programs of callers, on Node, Deno and in browsers: needs fetch, and a WebSocket for streams, and
// imports nothing but its own folder. Shapes and rules of the service are those of docs/gateway.md; how
// the client itself behaves stands in docs/client.md. Holds no socket open between calls.

import {
  readAltLeader,
  readDestination,
  readDestinations,
  readNonce,
  readReceipt,
  readRegions,
  readRegistrations,
  readStatuses,
  readTexts,
  readTier,
  readTierEvents,
  readTipSnapshot,
} from "./answers.ts";
import { ShredwayCallError } from "./error.ts";
import { listOf, textOf } from "./fields.ts";
import { readJson, writeJson } from "./json.ts";
import { type KeepAlive, type KeepAliveOptions, keepAlive } from "./keep-alive.ts";
import type {
  RegisterTipsOptions,
  RouteOptions,
  SendAltOptions,
  SendBatchOptions,
  SendBundleOptions,
  SendPairOptions,
  SendTransactionOptions,
  ShredwayClientOptions,
} from "./options.ts";
import { type FollowOptions, follow, globalWebSocket, type SocketConstructor } from "./socket.ts";
import {
  type StatusSource,
  type WaitOptions,
  type WatchOptions,
  waitForEnds,
  watchStatuses,
} from "./status-watch.ts";
import { base64Of, encodingOf } from "./transactions.ts";
import { type CallOptions, Transport } from "./transport.ts";
import type {
  AltLeader,
  BundleReceipt,
  Destination,
  NonceInfo,
  Region,
  Registration,
  RegistrationReceipt,
  StatusUpdate,
  TierEvent,
  TierView,
  TipRegistration,
  TipSnapshot,
  TransactionInput,
  TransactionStatus,
} from "./types.ts";

/** Two snapshots are a quarter of an hour apart at most. */
const tipSilenceMs = 16 * 60_000;
const statusSilenceMs = 45_000;
/** A signature that nobody has: asked for to learn whether the key may ask. */
const nobodysSignature = "1".repeat(64);

function queryOf({ swqosOnly = false, mevProtect = false }: RouteOptions): string {
  const switches = [swqosOnly && "swqos-only=true", mevProtect && "mev-protect=true"];
  const set = switches.filter((each) => each !== false);
  return set.length === 0 ? "" : `?${set.join("&")}`;
}

export class ShredwayClient {
  readonly #transport: Transport;
  readonly #WebSocket: SocketConstructor | null;

  /** Throws TypeError for a URL that is none. */
  constructor(options: ShredwayClientOptions) {
    const { url, apiKey, timeoutMs = 10_000, readRetries = 0 } = options;
    this.#transport = new Transport({ url, apiKey, fetch: options.fetch, timeoutMs, readRetries });
    this.#WebSocket = options.WebSocket ?? globalWebSocket();
  }

  // ---- submissions: sent once, unless `retries` says otherwise --------------------------------

  /** The signature. It means that a route has it, not that it landed: waitForEnd. */
  async sendTransaction(
    transaction: TransactionInput,
    options: SendTransactionOptions = {},
  ): Promise<string> {
    const { skipPreflight = true, preflightCommitment, maxRetries, minContextSlot } = options;
    const encoding = encodingOf([transaction], options.encoding);
    const config = { encoding, skipPreflight, preflightCommitment, maxRetries, minContextSlot };
    return textOf(
      await this.#submit("sendTransaction", [base64Of(transaction), config], options),
      "sendTransaction",
    );
  }

  /** 1 to 4, in order, all or none. */
  async sendBundle(
    transactions: readonly TransactionInput[],
    options: SendBundleOptions = {},
  ): Promise<BundleReceipt> {
    const { mevProtect, revertProtection } = options;
    const encoding = encodingOf(transactions, options.encoding);
    const config = { encoding, mevProtect, revertProtection };
    const params = [transactions.map(base64Of), config];
    const { result, headers } = await this.#transport.rpc(
      "sendBundle",
      params,
      { isRead: false },
      options,
    );
    return { signatures: readTexts(result, "sendBundle"), bundleId: headers.get("x-bundle-id") };
  }

  /** Two of one durable nonce, of which one lands; the signatures in the order of the transactions. */
  async sendIdeal(
    pair: readonly [TransactionInput, TransactionInput],
    options: SendPairOptions = {},
  ): Promise<readonly [string, string]> {
    const encoding = encodingOf(pair, options.encoding);
    const params = [pair.map(base64Of), { encoding }];
    const [first = "", second = ""] = readTexts(
      await this.#submit("sendIdeal", params, options),
      "sendIdeal",
    );
    return [first, second];
  }

  /** Up to 25, each for itself. Needs a key with the scope "batch". */
  async sendBatch(
    transactions: readonly TransactionInput[],
    options: SendBatchOptions = {},
  ): Promise<string[]> {
    const encoding = encodingOf(transactions, options.encoding);
    const params = [transactions.map(base64Of), { encoding }];
    return readTexts(await this.#submit("sendBatch", params, options), "sendBatch");
  }

  /** For the slots of alternative partners. */
  async sendAlt(transaction: TransactionInput, options: SendAltOptions): Promise<string> {
    const { enableFallback, revertProtection } = options;
    const encoding = encodingOf([transaction], options.encoding);
    const config = { encoding, enableFallback, revertProtection };
    const result = await this.#submit("sendAlt", [base64Of(transaction), config], options);
    return textOf(readTexts(result, "sendAlt")[0], "sendAlt[0]");
  }

  // ---- what became of them --------------------------------------------------------------------

  /** null: none of this account in the time that is kept. */
  getTransactionStatus(signature: string, options?: CallOptions): Promise<TransactionStatus | null>;
  /** Up to 256, in their order. */
  getTransactionStatus(
    signatures: readonly string[],
    options?: CallOptions,
  ): Promise<(TransactionStatus | null)[]>;
  async getTransactionStatus(
    given: string | readonly string[],
    options: CallOptions = {},
  ): Promise<TransactionStatus | null | (TransactionStatus | null)[]> {
    const isOne = typeof given === "string";
    const statuses = await this.#statuses(isOne ? [given] : given, options);
    return isOne ? (statuses[0] ?? null) : statuses;
  }

  /** The end of a submission, by the stream where there is a WebSocket, else by asking. */
  waitForEnd(signature: string, options?: WaitOptions): Promise<TransactionStatus>;
  /** Up to 256; settles when all of them have ended. */
  waitForEnd(signatures: readonly string[], options?: WaitOptions): Promise<TransactionStatus[]>;
  async waitForEnd(
    given: string | readonly string[],
    options: WaitOptions = {},
  ): Promise<TransactionStatus | TransactionStatus[]> {
    const isOne = typeof given === "string";
    const source = this.#statusSource();
    const ended = await waitForEnds(source, isOne ? [given] : given, options);
    const [first] = ended;
    return isOne && first ? first : ended;
  }

  /** Events as they come; comes back by itself when the connection is cut. Throws the signal's reason. */
  watchStatuses(options: WatchOptions = {}): AsyncGenerator<StatusUpdate> {
    const source = this.#statusSource();
    const { feed } = source;
    if (!feed) throw this.#webSocketMissing();
    return watchStatuses({ ...source, feed }, options);
  }

  // ---- nonces, tips, regions ------------------------------------------------------------------

  /** Of the account that the service keeps for this key; or of any nonce account. */
  async getNonce(nonceAccount?: string, options?: CallOptions): Promise<NonceInfo> {
    const of = nonceAccount ?? this.#transport.apiKey;
    return readNonce(await this.#ask("getNonce", [of], options), "getNonce");
  }

  /** Each answer begins with another one: take the first. */
  async getTipAccounts(region?: string, options?: CallOptions): Promise<string[]> {
    const params = region === undefined ? [] : [region];
    return readTexts(await this.#ask("getTipAccounts", params, options), "getTipAccounts");
  }

  async getShredTipAccounts(region?: string, options?: CallOptions): Promise<string[]> {
    const params = region === undefined ? [] : [region];
    return readTexts(
      await this.#ask("getShredTipAccounts", params, options),
      "getShredTipAccounts",
    );
  }

  async getRegions(options?: CallOptions): Promise<Region[]> {
    return readRegions(await this.#ask("getRegions", [], options), "getRegions");
  }

  /** Without a key. */
  async tipFloor(options?: CallOptions): Promise<TipSnapshot> {
    const [snapshot] = listOf(
      await this.#get("/tip_floor", options),
      "/tip_floor",
      readTipSnapshot,
    );
    if (snapshot) return snapshot;
    throw new ShredwayCallError("answer_invalid: /tip_floor: expected a snapshot, got none", {
      reason: "answer_invalid",
    });
  }

  /** The present snapshot at once, a fresh one every quarter of an hour. Without a key. */
  tipStream(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<TipSnapshot> {
    const feed = this.#feed("/tip_stream", false, (signal) => this.tipFloor({ signal }));
    if (!feed) throw this.#webSocketMissing();
    return tipsOf({ ...feed, silenceMs: tipSilenceMs, signal: options.signal });
  }

  // ---- tips for shreds ------------------------------------------------------------------------

  /** 1 to 25 that were paid, each with the slot that triggered it. Each stands for itself. */
  async registerTips(
    tips: readonly TipRegistration[],
    options: RegisterTipsOptions = {},
  ): Promise<RegistrationReceipt> {
    const entries = tips.map(({ transaction, slot }) => ({
      transaction: base64Of(transaction),
      slot,
    }));
    const path = `/shred-pay?verbose=true${options.dryRun ? "&dry_run=true" : ""}`;
    const call = {
      method: "POST",
      path,
      body: writeJson(entries),
      isRead: false,
      what: "/shred-pay",
    } as const;
    return readReceipt(await this.#transport.json(call, options), "/shred-pay");
  }

  /** Newest first. `beforeMs`: the last `registeredMs` of the page before. */
  async getRegistrations(
    page: { readonly beforeMs?: number; readonly limit?: number } = {},
    options?: CallOptions,
  ): Promise<Registration[]> {
    return readRegistrations(
      await this.#ask("getRegistrations", [page], options),
      "getRegistrations",
    );
  }

  async getTier(options?: CallOptions): Promise<TierView> {
    return readTier(await this.#ask("getTier", [], options), "getTier");
  }

  /** Newest first. `before`: the last `number` of the page before. */
  async getTierHistory(
    page: { readonly before?: bigint | number; readonly limit?: number } = {},
    options?: CallOptions,
  ): Promise<TierEvent[]> {
    return readTierEvents(await this.#ask("getTierHistory", [page], options), "getTierHistory");
  }

  async getDestinations(options?: CallOptions): Promise<Destination[]> {
    return readDestinations(await this.#ask("getDestinations", [], options), "getDestinations");
  }

  /** Unproved; three challenges are on their way to it. */
  addDestination(
    destination: { readonly region: string; readonly address: string },
    options?: CallOptions,
  ): Promise<Destination> {
    return this.#destination("addDestination", [destination], options);
  }

  async removeDestination(id: string, options?: CallOptions): Promise<void> {
    await this.#submit("removeDestination", [id], options ?? {});
  }

  /** Three more challenges leave. */
  challengeDestination(id: string, options?: CallOptions): Promise<Destination> {
    return this.#destination("challengeDestination", [id], options);
  }

  /** By the token of a challenge, for receivers that cannot answer it: 32 hex digits. */
  proveDestination(id: string, token: string, options?: CallOptions): Promise<Destination> {
    return this.#destination("proveDestination", [id, token], options);
  }

  // ---- alternative partners, health -----------------------------------------------------------

  /** Identities that lead in the present epoch. Without a key. */
  async altValidators(options?: CallOptions): Promise<string[]> {
    return readTexts(await this.#get("/api/alt_validators", options), "/api/alt_validators");
  }

  /** From `slot` on, default the present one; null: none is known. Without a key. */
  async nextAltValidator(slot?: bigint | number, options?: CallOptions): Promise<AltLeader | null> {
    const path = `/api/next_alt_validator${slot === undefined ? "" : `/${slot}`}`;
    try {
      return readAltLeader(await this.#get(path, options), path);
    } catch (error) {
      if (error instanceof ShredwayCallError && error.reason === "leader_unknown") return null;
      throw error;
    }
  }

  /** "ok". Without a key. */
  getHealth(options?: CallOptions): Promise<string> {
    const call = { method: "GET", path: "/gethealth", isRead: true, what: "/gethealth" } as const;
    return this.#transport.text(call, options);
  }

  /** A health call now and every `intervalMs`, so that a pooled connection stays open. 5 to 8 seconds do. */
  keepAlive(intervalMs = 5_000, options: KeepAliveOptions = {}): KeepAlive {
    return keepAlive(() => this.getHealth({ retries: 0 }), intervalMs, options);
  }

  // ---- inside ---------------------------------------------------------------------------------

  async #ask(method: string, params: readonly unknown[], options?: CallOptions): Promise<unknown> {
    return (await this.#transport.rpc(method, params, { isRead: true }, options)).result;
  }

  async #submit(
    method: string,
    params: readonly unknown[],
    options: CallOptions & RouteOptions,
  ): Promise<unknown> {
    const query = queryOf(options);
    return (await this.#transport.rpc(method, params, { isRead: false, query }, options)).result;
  }

  async #destination(
    method: string,
    params: readonly unknown[],
    options: CallOptions = {},
  ): Promise<Destination> {
    return readDestination(await this.#submit(method, params, options), method);
  }

  #get(path: string, options?: CallOptions): Promise<unknown> {
    return this.#transport.json({ method: "GET", path, isRead: true, what: path }, options);
  }

  async #statuses(
    signatures: readonly string[],
    options: CallOptions,
  ): Promise<(TransactionStatus | null)[]> {
    const what = "getTransactionStatus";
    return readStatuses(await this.#ask(what, [signatures], options), what);
  }

  #statusSource(): StatusSource {
    const statuses: StatusSource["statuses"] = (signatures, options) =>
      this.#statuses(signatures, options);
    const diagnose = (signal: AbortSignal | undefined) =>
      this.#statuses([nobodysSignature], { signal });
    const feed = this.#feed("/status", true, diagnose);
    return { statuses, feed: feed && { ...feed, silenceMs: statusSilenceMs } };
  }

  #feed(
    path: string,
    withKey: boolean,
    diagnose: FollowOptions["diagnose"],
  ): Pick<FollowOptions, "url" | "WebSocket" | "diagnose"> | null {
    const WebSocket = this.#WebSocket;
    return WebSocket && { url: this.#transport.socketUrl(path, withKey), WebSocket, diagnose };
  }

  #webSocketMissing(): ShredwayCallError {
    return new ShredwayCallError(
      "websocket_missing: expected a WebSocket in this runtime, got none: pass one as the option WebSocket, " +
        "on Node 20 the one of the package ws",
      { reason: "websocket_missing" },
    );
  }
}

async function* tipsOf(feed: FollowOptions): AsyncGenerator<TipSnapshot> {
  let before = "";
  for await (const text of follow(feed)) {
    // After a cut the service begins with the present one again.
    if (text === null || text === before) continue;
    before = text;
    yield readTipSnapshot(readJson(text), "/tip_stream");
  }
}
