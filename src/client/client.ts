// ShredwayClient: typed methods for the service's features that stock Solana clients lack.
//
// For callers' programs on Node, Deno and in browsers. It needs fetch, and a WebSocket for streams,
// and imports only its own folder. The service's types and rules are documented in docs/gateway.md,
// the client's behaviour in docs/client.md. It holds no socket open between calls.
//
// Every method rejects with a ShredwayCallError, and after an abort with the signal's reason. Slots and
// lamports are bigint; signatures are in the order of their transactions.

import {
  readAltLeader,
  readDestination,
  readDestinations,
  readNonce,
  readReceipt,
  readRegions,
  readRegisteredKey,
  readRegisteredKeys,
  readRegistrations,
  readStatuses,
  readTexts,
  readTier,
  readTierEvents,
  readTransactionPush,
  readTransactionPushes,
} from "./answers.ts";
import { ShredwayCallError, webSocketMissing } from "./error.ts";
import { textOf } from "./fields.ts";
import { type KeepAlive, type KeepAliveOptions, keepAlive } from "./keep-alive.ts";
import type {
  GetReceiptOptions,
  RegisterTipsOptions,
  SendAltOptions,
  SendBatchOptions,
  SendBundleOptions,
  SendPairOptions,
  SendTransactionOptions,
  ShredwayClientOptions,
  SubmissionOptions,
  TipAccountOptions,
  TransactionPushOptions,
} from "./options.ts";
import { readKeySet } from "./receipts.ts";
import { type FollowOptions, globalWebSocket, type SocketConstructor } from "./socket.ts";
import {
  type StatusSource,
  type WaitOptions,
  type WatchOptions,
  waitForEnds,
  watchStatuses,
} from "./status-watch.ts";
import { queryOf } from "./submission-query.ts";
import { registrationCall } from "./tip-registration.ts";
import { readTipFloor, readTipHistory, tipHistoryPath, tipsOf } from "./tip-stream.ts";
import { base64Of, encodingOf } from "./transactions.ts";
import { type CallOptions, type RpcAnswer, Transport } from "./transport.ts";
import type {
  AltLeader,
  BundleReceipt,
  Destination,
  KeySet,
  NonceInfo,
  PublicKeyRegistration,
  Region,
  RegisteredKey,
  RegisteredKeys,
  Registration,
  RegistrationReceipt,
  StatusUpdate,
  TierEvent,
  TierView,
  TipHistory,
  TipRegistration,
  TipSnapshot,
  TransactionInput,
  TransactionPush,
  TransactionPushes,
  TransactionPushFilter,
  TransactionStatus,
} from "./types.ts";

const statusSilenceMs = 45_000;
/** A signature that does not exist. A status call for it shows whether the key has the scope. */
const nobodysSignature = "1".repeat(64);

export class ShredwayClient {
  readonly #transport: Transport;
  readonly #WebSocket: SocketConstructor | null;

  /** Throws TypeError for an invalid URL. */
  constructor(options: ShredwayClientOptions) {
    const { url, apiKey, timeoutMs = 10_000, readRetries = 0 } = options;
    this.#transport = new Transport({ url, apiKey, fetch: options.fetch, timeoutMs, readRetries });
    this.#WebSocket = options.WebSocket ?? globalWebSocket();
  }

  // ---- submissions: sent once, unless `retries` is set ------------------------------------------

  /** Returns the signature. It means that a route accepted the transaction, not that it landed: see waitForEnd. */
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

  /** Sends 1 to 4 transactions, which land in this order, all or none. */
  async sendBundle(
    transactions: readonly TransactionInput[],
    options: SendBundleOptions = {},
  ): Promise<BundleReceipt> {
    const { mevProtect, revertProtection, ...others } = options;
    const encoding = encodingOf(transactions, options.encoding);
    const config = { encoding, mevProtect, revertProtection };
    const params = [transactions.map(base64Of), config];
    const { result, headers } = await this.#answer("sendBundle", params, others);
    return { signatures: readTexts(result, "sendBundle"), bundleId: headers.get("x-bundle-id") };
  }

  /**
   * Two transactions that use one durable nonce, so that only one of them lands. Returns the
   * signatures in the order of the transactions.
   */
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

  /** Sends 1 to 25 independent transactions. Requires a key with the scope "batch". */
  async sendBatch(
    transactions: readonly TransactionInput[],
    options: SendBatchOptions = {},
  ): Promise<string[]> {
    const encoding = encodingOf(transactions, options.encoding);
    const params = [transactions.map(base64Of), { encoding }];
    return readTexts(await this.#submit("sendBatch", params, options), "sendBatch");
  }

  /** Sends the transaction in the slots of alternative partners. Returns the signature. */
  async sendAlt(transaction: TransactionInput, options: SendAltOptions): Promise<string> {
    const { enableFallback, revertProtection } = options;
    const encoding = encodingOf([transaction], options.encoding);
    const config = { encoding, enableFallback, revertProtection };
    const result = await this.#submit("sendAlt", [base64Of(transaction), config], options);
    return textOf(readTexts(result, "sendAlt")[0], "sendAlt[0]");
  }

  // ---- transaction status -----------------------------------------------------------------------

  /** null: this account has no such submission within the retention time. */
  getTransactionStatus(signature: string, options?: CallOptions): Promise<TransactionStatus | null>;
  /** Up to 256 signatures; the result has the same order. */
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

  /** Waits for the final status of a submission, by the stream if a WebSocket is available, else by polling. */
  waitForEnd(signature: string, options?: WaitOptions): Promise<TransactionStatus>;
  /** Up to 256 signatures. Settles when all of them have a final status. */
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

  /** Events as they occur. Reconnects after a disconnection. Throws the signal's reason. */
  watchStatuses(options: WatchOptions = {}): AsyncGenerator<StatusUpdate> {
    const source = this.#statusSource();
    const { feed } = source;
    if (!feed) throw webSocketMissing();
    return watchStatuses({ ...source, feed }, options);
  }

  // ---- receipts ---------------------------------------------------------------------------------

  /** A signed statement about the final state of a submission, or about its acceptance. */
  async getReceipt(
    signature: string,
    { statement = "final", ...options }: GetReceiptOptions = {},
  ): Promise<string> {
    return textOf(await this.#ask("getReceipt", [signature, { statement }], options), "getReceipt");
  }

  /** The public keys of receipts and tip statistics. Requires no key. */
  async getSigningKeys(options?: CallOptions): Promise<KeySet> {
    const path = "/.well-known/shredway-keys.json";
    return readKeySet(await this.#get(path, options), path);
  }

  // ---- nonces, tips, regions ------------------------------------------------------------------

  /** The nonce account that the service manages for this key, or any other nonce account. */
  async getNonce(nonceAccount?: string, options?: CallOptions): Promise<NonceInfo> {
    const of = nonceAccount ?? this.#transport.apiKey;
    return readNonce(await this.#ask("getNonce", [of], options), "getNonce");
  }

  /**
   * Use the first address: the order rotates with each response, or is ascending by write locks in recent
   * blocks (`orderBy`), which throws "contention_unknown" until the service has observed some.
   */
  async getTipAccounts(
    region?: string,
    { orderBy, ...options }: TipAccountOptions = {},
  ): Promise<string[]> {
    const params = [orderBy ? { region, orderBy } : region].filter((one) => one !== undefined);
    return readTexts(await this.#ask("getTipAccounts", params, options), "getTipAccounts");
  }

  /** The addresses for tips that buy shreds. Use the first one, as of getTipAccounts. */
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

  /** Percentiles of the tips that landed in 15 minutes, in lamports. Requires no key. */
  async tipFloor(options?: CallOptions): Promise<TipSnapshot> {
    return readTipFloor(await this.#get("/tip_floor", options));
  }

  /** One entry per quarter hour, in lamports; those without a refresh are missing. Requires no key. */
  async tipHistory(period: TipHistory["period"], options?: CallOptions): Promise<TipHistory> {
    const path = `${tipHistoryPath}?period=${period}`;
    return readTipHistory(await this.#get(path, options), tipHistoryPath);
  }

  /** Yields the current snapshot immediately and a new one every quarter hour. Requires no key. */
  tipStream(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<TipSnapshot> {
    const feed = this.#feed("/tip_stream", false, (signal) => this.tipFloor({ signal }));
    if (!feed) throw webSocketMissing();
    return tipsOf({ ...feed, signal: options.signal });
  }

  // ---- tips for shreds ------------------------------------------------------------------------

  /**
   * Registers 1 to 25 tips that were paid. Each result is independent: the call also succeeds if entries
   * are rejected. It does not send the transactions.
   */
  async registerTips(
    tips: readonly TipRegistration[],
    options: RegisterTipsOptions = {},
  ): Promise<RegistrationReceipt> {
    const call = registrationCall(tips, options);
    return readReceipt(await this.#transport.json(call, options), "/shred-pay");
  }

  /** Newest first. `beforeMs`: the last `registeredMs` of the page before. `limit`: 1 to 1000, by default 100. */
  async getRegistrations(
    page: { readonly beforeMs?: number; readonly limit?: number } = {},
    options?: CallOptions,
  ): Promise<Registration[]> {
    const what = "getRegistrations";
    return readRegistrations(await this.#ask(what, [page], options), what);
  }

  /** The account's tier, the sum of its tips, and what each tier needs. */
  async getTier(options?: CallOptions): Promise<TierView> {
    return readTier(await this.#ask("getTier", [], options), "getTier");
  }

  /** Newest first. `before`: the last `number` of the previous page. `limit`: 1 to 100, by default 100. */
  async getTierHistory(
    page: { readonly before?: bigint | number; readonly limit?: number } = {},
    options?: CallOptions,
  ): Promise<TierEvent[]> {
    return readTierEvents(await this.#ask("getTierHistory", [page], options), "getTierHistory");
  }

  async getDestinations(options?: CallOptions): Promise<Destination[]> {
    return readDestinations(await this.#ask("getDestinations", [], options), "getDestinations");
  }

  /**
   * `address` is "IP:port". The new destination is not verified yet and receives no shreds: the service sends three
   * challenges to it, at once, after 2 s and after 10 s. `recovered` is experimental.
   */
  addDestination(
    destination: {
      readonly region: string;
      readonly address: string;
      readonly recovered?: boolean;
    },
    options?: CallOptions,
  ): Promise<Destination> {
    return this.#destination("addDestination", [destination], options);
  }

  /** Switches recovered shreds (experimental) on or off. */
  updateDestination(
    id: string,
    changes: { readonly recovered: boolean },
    options?: CallOptions,
  ): Promise<Destination> {
    return this.#destination("updateDestination", [id, changes], options);
  }

  /** Ends its shreds. It can be added again, and must then be verified again. */
  async removeDestination(id: string, options?: CallOptions): Promise<void> {
    await this.#submit("removeDestination", [id], options ?? {});
  }

  /** Sends three more challenges. */
  challengeDestination(id: string, options?: CallOptions): Promise<Destination> {
    return this.#destination("challengeDestination", [id], options);
  }

  /**
   * Verifies it with the token of a challenge (32 hex digits), for receivers that cannot
   * answer challenges.
   */
  proveDestination(id: string, token: string, options?: CallOptions): Promise<Destination> {
    return this.#destination("proveDestination", [id, token], options);
  }

  // ---- transaction pushes ---------------------------------------------------------------------

  /**
   * Sends matching transactions to a destination over UDP. Call it again before `endsAt`. `filter`: {}
   * matches everything, null keeps the filter of the open push.
   */
  async startTransactionPush(
    destination: string,
    filter: TransactionPushFilter | null,
    { leaseSeconds, shreds, ...options }: TransactionPushOptions = {},
  ): Promise<TransactionPush> {
    const params = [destination, filter, { leaseSeconds, shreds }];
    const what = "startTransactionPush";
    return readTransactionPush(await this.#ask(what, params, options), what);
  }

  /** Ends the push. Throws "destination_unknown" if none is open to this destination. */
  async stopTransactionPush(destination: string, options: CallOptions = {}): Promise<void> {
    await this.#submit("stopTransactionPush", [destination], options);
  }

  /** The account's open pushes of this node, and how the last ones ended. */
  async getTransactionPushes(options?: CallOptions): Promise<TransactionPushes> {
    const what = "getTransactionPushes";
    return readTransactionPushes(await this.#ask(what, [], options), what);
  }

  // ---- public keys of the account -------------------------------------------------------------

  /** The account's id, which publicKeyProofMessage needs, and its public keys. */
  async getPublicKeys(options?: CallOptions): Promise<RegisteredKeys> {
    return readRegisteredKeys(await this.#ask("getPublicKeys", [], options), "getPublicKeys");
  }

  /** The public key then acts for this client's API key. A repetition changes nothing. */
  async registerPublicKey(
    registration: PublicKeyRegistration,
    options: CallOptions = {},
  ): Promise<RegisteredKey> {
    const params = [{ ...registration, signature: base64Of(registration.signature) }];
    const what = "registerPublicKey";
    return readRegisteredKey(await this.#submit(what, params, options), what);
  }

  /** Its connections and its shreds end. */
  async removePublicKey(publicKey: string, options: CallOptions = {}): Promise<void> {
    await this.#submit("removePublicKey", [publicKey], options);
  }

  // ---- alternative partners, health -----------------------------------------------------------

  /** Identities of the alternative partners that are leaders in the current epoch. Requires no key. */
  async altValidators(options?: CallOptions): Promise<string[]> {
    return readTexts(await this.#get("/api/alt_validators", options), "/api/alt_validators");
  }

  /**
   * The next alternative partner that is the leader, from `slot` on, by default the current slot. null: none
   * is known. Requires no key.
   */
  async nextAltValidator(slot?: bigint | number, options?: CallOptions): Promise<AltLeader | null> {
    const path = `/api/next_alt_validator${slot === undefined ? "" : `/${slot}`}`;
    try {
      return readAltLeader(await this.#get(path, options), path);
    } catch (error) {
      if (error instanceof ShredwayCallError && error.reason === "leader_unknown") return null;
      throw error;
    }
  }

  /** Returns "ok". Requires no key. */
  getHealth(options?: CallOptions): Promise<string> {
    const call = { method: "GET", path: "/gethealth", isRead: true, what: "/gethealth" } as const;
    return this.#transport.text(call, options);
  }

  /**
   * Calls health now and every `intervalMs`, so that a pooled connection stays open. Recommended: 5
   * to 8 seconds.
   */
  keepAlive(intervalMs = 5_000, options: KeepAliveOptions = {}): KeepAlive {
    return keepAlive(() => this.getHealth({ retries: 0 }), intervalMs, options);
  }

  // ---- private methods --------------------------------------------------------------------------

  async #ask(method: string, params: readonly unknown[], options?: CallOptions): Promise<unknown> {
    return (await this.#transport.rpc(method, params, { isRead: true }, options)).result;
  }

  async #submit(
    method: string,
    params: readonly unknown[],
    options: SubmissionOptions,
  ): Promise<unknown> {
    return (await this.#answer(method, params, options)).result;
  }

  async #answer(
    method: string,
    params: readonly unknown[],
    options: SubmissionOptions,
  ): Promise<RpcAnswer> {
    const call = { isRead: false, query: queryOf(options) };
    const answer = await this.#transport.rpc(method, params, call, options);
    options.onReceipt?.(answer.receipt);
    return answer;
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
}
