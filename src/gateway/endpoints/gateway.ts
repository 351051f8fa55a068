// Gateway: routes HTTP requests of the service to their handlers.
//
// The service creates it and opens an HttpServer with `serverOptions()`. It owns no sockets, files
// or threads; GatewayDependencies contains everything it needs. Every request gets one response. A
// submission continues after its caller disconnects.

import { callerOf } from "../../core/addresses/caller.ts";
import type { Reason } from "../../core/errors.ts";
import { answerJsonRpc } from "../../core/json-rpc/handle.ts";
import { packageVersion } from "../../core/version.ts";
import type { ConnectionSnapshot, RateLimitReport } from "../accounts/connection-records.ts";
import { RateLimits } from "../accounts/rate-limits.ts";
import { type ApiKey, scopes } from "../accounts/types.ts";
import type {
  HttpHead,
  HttpRequest,
  HttpResponse,
  HttpServerOptions,
  WebSocketRoute,
} from "../http/types.ts";
import { ConcurrencyLimit } from "../methods/concurrency-limit.ts";
import type {
  GatewayDependencies,
  GatewaySettings,
  LimitVerdict,
  Path,
} from "../methods/dependencies.ts";
import type { MethodContext } from "../methods/method.ts";
import { checkedSignature } from "../methods/statuses.ts";
import { TransactionAdmission } from "../methods/transaction-admission.ts";
import type { Ingress } from "../submission/types.ts";
import {
  answerOf,
  baseHeaders,
  pagePaths,
  plainRefusal,
  preflightAnswer,
  refusalAnswer,
  serverOptionsAnswer,
  serverRefusal,
  textAnswer,
  tooLarge,
  upgradeAnswer,
  withIds,
} from "./answers.ts";
import { headBytesMax } from "./body-limits.ts";
import { Callers, type RequestCaller, unauthorized } from "./callers.ts";
import { Descriptions } from "./description/descriptions.ts";
import { openApiPath, openRpcPath } from "./description/document-paths.ts";
import { type EndpointGroup, isServed } from "./endpoint-groups.ts";
import { submissionsUnderWayMax, tooManyAnswer, waitedTooLong } from "./overload-answers.ts";
import { Query } from "./query.ts";
import { QueuedRequest } from "./queued-request.ts";
import { answerRaw, rawId } from "./raw-endpoints.ts";
import { receiptHeader } from "./receipt-header.ts";
import { RequestContext } from "./request-context.ts";
import { RequestCounts } from "./request-counts.ts";
import { maySubmit, plainPath, textOf } from "./request-text.ts";
import { answerShredPay, requestsUnderWayMax, shredPayPath } from "./shred-pay.ts";
import { answerKeySet, signingKeysPath } from "./signing-keys.ts";
import { keyPathRoute, withSocketKeys } from "./socket-keys.ts";
import { StatusFeed } from "./status-feed.ts";
import { answerStream, type StreamAnswer, type StreamSubmission } from "./stream-submissions.ts";
import { SubmissionQueue } from "./submission-queue.ts";
import { SubmissionSockets } from "./submission-sockets.ts";
import { type Caller, subscriptionNames, subscriptionRoute } from "./subscriptions.ts";
import { TipFloorHandler, tipFloorPaths } from "./tip-floor.ts";
import { TipHistoryHandler, tipHistoryPath } from "./tip-history.ts";
import {
  isSlotPath,
  nextPath,
  slotPath,
  TrackerHandler,
  validatorsPath,
} from "./tracker-handler.ts";

export type { GatewayDependencies } from "../methods/dependencies.ts";

type Handler = Path["handle"];
type CallFacts = Pick<StreamSubmission, "key" | "query" | "receivedNs"> & Partial<StreamSubmission>;

/** A call with one transaction of a packet fits. */
const keylessBytesMax = 4096;
/** Calls of an address without a key that are counted (getTipAccounts). */
const keylessLimit = { requestsPerSecond: 10, burst: 10 };
const keylessCallersMax = 10_000;
/** WebSocket for decoded streams and every other JSON-RPC method. */
const streamPath = "/stream";
const blockEnginePath = /^\/api\/v1\//;
/** Paths of block engines; each accepts every method. */
const blockEnginePaths = [
  "transactions",
  "bundles",
  "getTipAccounts",
  "getBundleStatuses",
  "getInflightBundleStatuses",
].map((name) => `/api/v1/${name}`);

export class Gateway {
  readonly #dependencies: GatewayDependencies;
  /** Counters for the metrics. */
  readonly counts: RequestCounts;
  readonly #methodContext: MethodContext;
  readonly #descriptions: Descriptions;
  readonly #callers: Callers;
  readonly #statusFeed: StatusFeed;
  readonly #submissionSockets: SubmissionSockets;
  readonly #streamSockets: WebSocketRoute;
  readonly #tipFloor: TipFloorHandler | null;
  readonly #queue: SubmissionQueue;
  readonly #registrations = new ConcurrencyLimit(requestsUnderWayMax);
  readonly #keyless = new RateLimits(keylessCallersMax);
  readonly #paths: ReadonlyMap<string, Path>;
  #turns = 0;
  #reports = 0;

  /** `settings` may change at run time: each value is read when it is used. */
  constructor(dependencies: GatewayDependencies, settings: GatewaySettings) {
    this.#dependencies = dependencies;
    this.#queue = new SubmissionQueue(dependencies);
    const admission = new TransactionAdmission(dependencies, settings, () => !this.#queue.isEmpty);
    const submissionLimit = new ConcurrencyLimit(submissionsUnderWayMax);
    const descriptions = new Descriptions(packageVersion(), settings);
    this.#descriptions = descriptions;
    this.#methodContext = {
      dependencies,
      settings,
      admission,
      submissionLimit,
      nextTurn: () => this.#turns++,
      descriptions,
    };
    const { keys, publicKeys, clock, submissions } = dependencies;
    this.counts = new RequestCounts(
      () => clock.monotonicNs(),
      (method) => settings.readMethods.has(method),
    );
    this.#callers = new Callers({ keys, publicKeys, clock, settings });
    const report = (thrown: unknown): string => this.#report(thrown);
    this.#statusFeed = new StatusFeed({
      clock,
      submissions,
      report,
      authorise: (head) => this.#callers.authorise(head, ["submit", "batch"]),
      currentKey: (id, head) => this.#callers.current(id, head, ["submit", "batch"]),
      countHandshake: this.#countHandshake,
      checkSignature: (what, signature) => checkedSignature({ dependencies }, what, signature),
    });
    const { tipFloor } = dependencies;
    const addressOf = (head: HttpHead): Uint8Array => this.#callers.addressOf(head);
    this.#submissionSockets = new SubmissionSockets({
      clock,
      addressOf,
      authorise: (head) => this.#callers.authorise(head, ["submit"]),
      currentKey: (id, head) => this.#callers.current(id, head, ["submit"]),
      countHandshake: this.#countHandshake,
      contextOf: (key, query) => this.contextOf(key, query),
      submit: (stream) => this.answerStream(stream),
      rejected: (reason) => this.#ended("sendTransaction", reason),
      rateLimited: (limit) => this.rateLimited("websocket", limit),
    });
    this.#streamSockets = this.#subscriptions(true);
    this.#tipFloor = tipFloor && new TipFloorHandler({ ...dependencies, tipFloor, addressOf });
    this.#paths = this.#makePaths();
  }

  /** WebSockets that submit on /relayb. */
  get socketRecords(): ConnectionSnapshot {
    return this.#submissionSockets.records;
  }

  /**
   * Options for HttpServer, except addresses and connection limit. `served`: endpoint groups of its
   * listeners; absent: all.
   */
  serverOptions(
    served?: ReadonlySet<EndpointGroup>,
  ): Omit<HttpServerOptions, "listen" | "connectionsMax"> {
    const keyPaths = keyPathRoute(this.#streamSockets, (head) => {
      const answer = this.handle({ ...head, body: new Uint8Array() }, served);
      return answer instanceof Promise ? this.#unknownPath(head, served) : answer;
    });
    const webSockets = Object.entries({ ...this.webSockets, "*": keyPaths }).filter(
      ([path]) => !served || isServed(path, served),
    );
    return {
      bodyBytesMax: (head) => this.bodyBytesMax(head),
      handle: (request) => this.handle(request, served),
      refusal: (status, reason, message, head) => {
        this.counts.refused(reason);
        const path = head && this.#findPath({ ...head, path: plainPath(head.path) });
        return serverRefusal({ status, reason, message }, path?.refusal);
      },
      webSockets: Object.fromEntries(webSockets),
      clock: this.#dependencies.clock,
    };
  }

  /** Limit of concurrent submitting calls. */
  get submissionLimit(): ConcurrencyLimit {
    return this.#methodContext.submissionLimit;
  }

  get submissionQueue(): Pick<SubmissionQueue, "counts"> {
    return this.#queue;
  }

  get webSockets(): Readonly<Record<string, WebSocketRoute>> {
    const subscriptions = this.#subscriptions(false);
    return {
      [streamPath]: this.#streamSockets,
      "/status": this.#statusFeed,
      "/": subscriptions,
      "/relay": subscriptions,
      "/relayb": this.#submissionSockets,
      ...(this.#tipFloor && { "/tip_stream": this.#tipFloor }),
      ...Object.assign({}, ...this.#dependencies.pages.map((pages) => pages.webSockets)),
    };
  }

  /** Never throws or rejects because of a caller's input. */
  handle(
    received: HttpRequest,
    served?: ReadonlySet<EndpointGroup>,
  ): HttpResponse | Promise<HttpResponse> {
    if (received.path === "*" && received.method === "OPTIONS") return serverOptionsAnswer;
    let request = received;
    let found = this.#findPath(request);
    if (!found) {
      request = { ...received, path: plainPath(received.path) };
      found = this.#findPath(request);
    }
    const isShown = !served || isServed(request.path, served);
    const path = isShown ? found : undefined;
    return this.counts.answered(request.path, path !== undefined, () =>
      path ? this.#answer(request, path, served) : this.#unknownPath(request, served),
    );
  }

  #unknownPath(head: HttpHead, served: ReadonlySet<EndpointGroup> | undefined): HttpResponse {
    const known = [...this.#paths.keys(), ...pagePaths(this.#dependencies.pages, head)];
    const shown = served ? known.filter((path) => isServed(path, served)) : known;
    return refusalAnswer("path_unknown", `unknown path; expected one of ${shown.join(", ")}`);
  }

  #answer(
    request: HttpRequest,
    path: Path,
    served: ReadonlySet<EndpointGroup> | undefined,
  ): HttpResponse | Promise<HttpResponse> {
    if (path.methods.includes(request.method)) return path.handle(request);
    const home = this.#homePageFor(request);
    if (home !== undefined && (!served || isServed(home, served)))
      return { status: 302, headers: { ...baseHeaders, location: home } };
    const allow = [...path.methods, "OPTIONS"].join(", ");
    if (request.method === "OPTIONS") return preflightAnswer(request, allow);
    const method = request.method.slice(0, 20);
    const message = `method ${method} is not allowed; expected ${allow}`;
    return (path.refusal ?? refusalAnswer)("http_method", message, { headers: { allow } });
  }

  #findPath(head: HttpHead): Path | undefined {
    const { path } = head;
    const own = this.#paths.get(isSlotPath(path) ? slotPath : path);
    if (own) return own;
    for (const pages of this.#dependencies.pages) {
      const found = pages.find(path, head);
      if (found) return found;
    }
    return undefined;
  }

  #historyPaths(): [string, Path][] {
    const { tipHistory } = this.#dependencies;
    if (!tipHistory) return [];
    const addressOf = (head: HttpHead): Uint8Array => this.#callers.addressOf(head);
    const handler = new TipHistoryHandler({ ...this.#dependencies, tipHistory, addressOf });
    const handle: Handler = (head) => handler.answer(head);
    return [[tipHistoryPath, { methods: ["GET", "HEAD"], handle, refusal: plainRefusal }]];
  }

  /** The page to which a browser at "/" is redirected. */
  #homePageFor(request: HttpRequest): string | undefined {
    const { path, method } = request;
    const isPageRequest = path === "/" && (method === "GET" || method === "HEAD");
    if (!isPageRequest || !(request.header("accept") ?? "").includes("text/html")) return undefined;
    return this.#dependencies.pages.find((pages) => pages.home !== undefined)?.home;
  }

  #makePaths(): ReadonlyMap<string, Path> {
    const post = (handle: Handler): Path => ({ methods: ["POST"], handle });
    const json = post((request) => this.#answerJson(request));
    const get = (handle: Handler): Path => ({ methods: ["GET", "HEAD"], handle });
    const plainGet = (handle: Handler): Path => ({ ...get(handle), refusal: plainRefusal });
    const shredPay = post((request) => this.#answerShredPay(request));
    const tipFloor = this.#tipFloor;
    const descriptions = this.#descriptions;
    const tracker = new TrackerHandler(this.#dependencies.tracker);
    return new Map<string, Path>([
      ["/relay", json],
      ["/", json],
      ["/relayb", { methods: ["POST", "GET"], handle: (request) => this.#answerBytes(request) }],
      ["/relay2", post((request) => this.#answerRaw(request, true))],
      [shredPayPath, { ...shredPay, refusal: plainRefusal }],
      ["/gethealth", get(() => textAnswer("ok"))],
      [signingKeysPath, get((request) => answerKeySet(request, this.#dependencies.signer))],
      ...blockEnginePaths.map((path): [string, Path] => [path, json]),
      ["/status", { methods: ["GET"], handle: () => upgradeAnswer() }],
      [streamPath, { methods: ["GET"], handle: () => upgradeAnswer() }],
      ...(tipFloor ? tipFloorPaths(tipFloor) : []),
      ...this.#historyPaths(),
      [validatorsPath, plainGet((request) => tracker.answerValidators(request))],
      [nextPath, plainGet((request) => tracker.answerNext(request))],
      [slotPath, plainGet((request) => tracker.answerAt(request))],
      [openRpcPath, get((request) => descriptions.answer(request, descriptions.openRpc()))],
      [openApiPath, get((request) => descriptions.answer(request, descriptions.openApi()))],
    ]);
  }

  /** Checks the key only for bodies above the limit without a key; most bodies are small. */
  bodyBytesMax(head: HttpHead): number {
    const announced = Number(head.header("content-length") ?? Number.NaN);
    if (announced <= headBytesMax(false)) return headBytesMax(false);
    const isBlockEngine = blockEnginePath.test(head.path);
    return headBytesMax(this.#callers.hasKey(head, Query.of(head.query), isBlockEngine));
  }

  #contextOf(request: HttpRequest, caller: RequestCaller): RequestContext {
    const { fastPath, body } = request;
    return new RequestContext(this.#methodContext, {
      key: caller.key,
      query: caller.query,
      isBlockEngine: caller.isBlockEngine,
      isForBrowser: request.header("origin") !== undefined,
      receivedNs: caller.receivedNs,
      receiptHeader: request.header(receiptHeader),
      fastPath: fastPath && { connection: fastPath.connection, head: fastPath.head, body },
      takeKeyless: () => this.#takeKeyless(request),
      report: this.report,
      ended: this.#ended,
    });
  }

  #takeKeyless(request: HttpRequest): LimitVerdict {
    const address = callerOf(this.#callers.addressOf(request));
    return this.#keyless.take(address, keylessLimit, this.#dependencies.clock.monotonicNs());
  }

  readonly #ended = (method: string, reason: Reason | null): void =>
    this.counts.called(method, reason);

  #answerJson(request: HttpRequest): HttpResponse | Promise<HttpResponse> {
    const caller = this.#callers.of(request, blockEnginePath.test(request.path));
    const { body } = request;
    if ("status" in caller) {
      return body.length > keylessBytesMax ? caller : withIds(caller, textOf(body));
    }
    // Longer bodies of requests without a key are not parsed.
    if (!caller.key && body.length > keylessBytesMax) return answerOf(unauthorized());
    const begin = (): HttpResponse | Promise<HttpResponse> => {
      const context = this.#contextOf(request, caller);
      const text = textOf(body);
      const bytesMax = context.bytesMaxOf(text);
      if (body.length > bytesMax) return withIds(tooLarge(bytesMax, body.length), text);
      return answerJsonRpc(text, context).then((answer) => context.response(answer));
    };
    return maySubmit(body) ? this.#submit(request, begin) : begin();
  }

  /**
   * Under overload, parsing a call costs too much: it is refused unparsed, so with the id null. `begin` creates
   * what it needs: garbage collections would copy it while the request waits.
   */
  #submit(
    request: HttpRequest,
    begin: () => HttpResponse | Promise<HttpResponse>,
  ): HttpResponse | Promise<HttpResponse> {
    const queued = new QueuedRequest(request, begin);
    if (this.submissionLimit.isFull) return queued.claim() ? begin() : tooManyAnswer;
    return this.#queue.run(queued);
  }

  #answerBytes(request: HttpRequest): HttpResponse | Promise<HttpResponse> {
    return request.method === "GET" ? upgradeAnswer("POST") : this.#answerRaw(request, false);
  }

  #answerRaw(request: HttpRequest, isText: boolean): HttpResponse | Promise<HttpResponse> {
    const caller = this.#callers.of(request, blockEnginePath.test(request.path));
    if ("status" in caller) return withIds(caller, rawId);
    const { query } = caller;
    const { body } = request;
    const begin = () =>
      answerRaw({ context: this.#contextOf(request, caller), query, body, isText });
    return body.length === 0 ? begin() : this.#submit(request, begin);
  }

  #answerShredPay(request: HttpRequest): HttpResponse | Promise<HttpResponse> {
    const caller = this.#callers.of(request, blockEnginePath.test(request.path), plainRefusal);
    if ("status" in caller) return caller;
    return answerShredPay({
      context: this.#contextOf(request, caller),
      query: caller.query,
      body: request.body,
      concurrencyLimit: this.#registrations,
      textOf,
    });
  }

  /**
   * Authentication for pages with a login; their failed attempts count together with all others.
   */
  get callers(): Callers {
    return this.#callers;
  }

  /** A WebSocket handshake counts as one call of the key. */
  readonly #countHandshake = (key: ApiKey): void => this.contextOf(key).admit("handshake");

  /** The context of one call with a known key; used by pages and WebSockets. */
  contextOf(key: ApiKey, query = Query.of("")): RequestContext {
    return this.#contextWithoutHttp({ key, query, receivedNs: this.#dependencies.clock.nowNs() });
  }

  #contextWithoutHttp(facts: CallFacts): RequestContext {
    const { key, query, receivedNs, ingress, fastPath } = facts;
    return new RequestContext(this.#methodContext, {
      key,
      query,
      isBlockEngine: false,
      uriNames: subscriptionNames,
      isForBrowser: false,
      receivedNs,
      ingress,
      fastPath,
      report: this.report,
      ended: this.#ended,
    });
  }

  /**
   * A submission that came on a stream, without HTTP, with the same limits and counters. Never rejects
   * because of a caller's input.
   */
  answerStream(stream: StreamSubmission): Promise<StreamAnswer> {
    this.#callers.used(stream.key.id);
    const methodContext = this.#methodContext;
    return Promise.resolve(
      this.#queue.run({
        claim: () => Boolean(stream.fastPath?.connection.claim()),
        begin: () =>
          answerStream({ context: this.#contextWithoutHttp(stream), stream, methodContext }),
        refuse: () => ({ reason: "overloaded", text: waitedTooLong }),
      }),
    );
  }

  /** Passes the report to the account's clients of /status. */
  rateLimited(ingress: Ingress, report: RateLimitReport): void {
    this.#statusFeed.rateLimited(ingress, report);
  }

  /** Logs a fault and returns a reference that the caller can quote. */
  readonly report = (thrown: unknown): string => this.#report(thrown);

  /** Calls over a WebSocket have the same methods and limits as over HTTP. */
  #subscriptions(takesLongFilters: boolean): WebSocketRoute {
    const { clock, sockets, streams } = this.#dependencies;
    const contextOf = ({ key, query }: Caller): RequestContext => this.contextOf(key, query);
    return subscriptionRoute({
      node: sockets,
      authorise: (head) => this.#callers.authorise(withSocketKeys(head), scopes),
      currentKey: (id, head) => this.#callers.current(id, head, scopes),
      clock,
      ...(streams && { streams }),
      addressOf: (head) => this.#callers.addressOf(head),
      takesLongFilters,
      countHandshake: this.#countHandshake,
      report: this.report,
      admit: (caller, method) => contextOf(caller).admit(method),
      ended: this.#ended,
      dispatch: (caller, method, params) => contextOf(caller).dispatch(method, params),
      dispatchNamed: (caller, method, params) => contextOf(caller).dispatchNamed(method, params),
    });
  }

  #report(thrown: unknown): string {
    const reference = `gateway-${++this.#reports}`;
    const error = thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
    this.#dependencies.log?.error({ reference, error }, "gateway: a method failed");
    return reference;
  }
}
