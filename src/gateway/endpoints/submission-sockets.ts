// The WebSocket on /relayb: each binary message is a transaction, or a bundle as frames.
//
// gateway.ts passes it to the HTTP server. For clients that want one open connection and cannot use QUIC. The
// rules are those of a POST to /relayb, with the parameters of the handshake's URL for every message. A
// connection is closed within a second after the end of its key.

import { formatAddress } from "../../core/addresses/addresses.ts";
import type { Clock, Timer } from "../../core/clock.ts";
import { quote, type Reason, ShredwayError } from "../../core/errors.ts";
import { frameStatusOf, responseFrame } from "../../core/quic/response-frame.ts";
import { bundleTransactionsMax } from "../../core/transactions/bundle-limits.ts";
import {
  ConnectionRecords,
  type ConnectionSnapshot,
  type RateLimitReport,
} from "../accounts/connection-records.ts";
import type { ApiKey } from "../accounts/types.ts";
import {
  type HttpHead,
  type HttpResponse,
  type WebSocketPeer,
  type WebSocketRoute,
  webSocketIdleSeconds,
} from "../http/types.ts";
import type { Authorise } from "../methods/dependencies.ts";
import { answerOf, handshakeRefusal, pauseRefusal } from "./answers.ts";
import { HandshakePauses } from "./handshake-pauses.ts";
import { Query } from "./query.ts";
import { rawParameters } from "./raw-endpoints.ts";
import { isReceiptHeaderSet, receiptHeader } from "./receipt-header.ts";
import { type RequestContext, uriParameters } from "./request-context.ts";
import { type CurrentKey, SocketKeyChecks } from "./socket-key-checks.ts";
import {
  type StreamAnswer,
  type StreamSubmission,
  socketNames,
  socketParameters,
} from "./stream-submissions.ts";

const socketsPerKeyMax = 10;
/** Submissions of a connection that wait for their acceptance; further ones are rejected. */
const underWayMax = 64;
/** Responses that wait for earlier ones. */
const responsesMax = 1024;
const transactionBytesMax = 4096;
const frameHeadBytes = 2;
const submissionBytesMax = bundleTransactionsMax * (frameHeadBytes + transactionBytesMax);
const reportMs = 500;
const keyEndText = "the API key is no longer valid, or lacks the scope submit";
const unsupportedData = 1003;
const tryAgainLater = 1013;

const checkedParameters = [
  socketParameters.responses,
  rawParameters.maxRetries,
  rawParameters.minContextSlot,
] as const;

interface SocketDependencies {
  readonly clock: Clock;
  readonly authorise: Authorise;
  readonly currentKey: CurrentKey;
  /** The client's address, 16 bytes. */
  readonly addressOf: (head: HttpHead) => Uint8Array;
  /** Counts a handshake against the key's limit. Throws ShredwayError "rate_limited". */
  readonly countHandshake: (key: ApiKey) => void;
  readonly contextOf: (key: ApiKey, query: Query) => Pick<RequestContext, "callOf">;
  /** Never rejects because of a client's input. */
  readonly submit: (stream: StreamSubmission) => Promise<StreamAnswer>;
  /** A message was rejected without a look at its bytes. */
  readonly rejected: (reason: Reason) => void;
  readonly rateLimited: (report: RateLimitReport) => void;
}

interface Connection {
  readonly id: number;
  readonly keyId: string;
  readonly query: Query;
  /** Responses in the order of the messages, null while one is missing; null: none are requested. */
  readonly responses: (Uint8Array | null)[] | null;
  /** Number of responses that were sent before the first one of `responses`. */
  sent: number;
  underWay: number;
}

export class SubmissionSockets implements WebSocketRoute {
  readonly messageBytesMax = submissionBytesMax;
  readonly messageLimits = {
    messagesPerSecond: 1000,
    messagesBurst: 2000,
    bytesPerSecond: 4 * 1024 * 1024,
  } as const;
  readonly backpressureBytesMax = 1024 * 1024;
  readonly idleSeconds = webSocketIdleSeconds;
  readonly #dependencies: SocketDependencies;
  readonly #connections = new Map<WebSocketPeer, Connection>();
  readonly #records: ConnectionRecords;
  readonly #pauses = new HandshakePauses();
  readonly #keyChecks: SocketKeyChecks;
  #opened = 0;
  #reports: Timer | undefined;

  constructor(dependencies: SocketDependencies) {
    const { clock, currentKey } = dependencies;
    this.#dependencies = dependencies;
    this.#keyChecks = new SocketKeyChecks({ clock, currentKey, reason: keyEndText });
    this.#records = new ConnectionRecords(dependencies.rateLimited);
  }

  /** Open sockets, and the counts of their keys since the start. */
  get records(): ConnectionSnapshot {
    return { connections: this.#records.connections(), keys: this.#records.keys() };
  }

  accept(head: HttpHead): HttpResponse | undefined {
    const { authorise, clock, countHandshake, contextOf } = this.#dependencies;
    const found = authorise(head);
    if (!("key" in found)) return found;
    const { key } = found;
    const paused = pauseRefusal(this.#pauses.secondsLeft(key.id, clock.monotonicNs()));
    if (paused) return paused;
    if (this.#records.count(key.id) >= socketsPerKeyMax) return answerOf(tooManySockets());
    const invalid = handshakeRefusal(() => {
      const query = new Query(head.query);
      refuseMethod(query);
      refuseReceipt(head, query);
      contextOf(key, query).callOf("sendTransaction", ["submit"], socketNames);
      for (const parameter of checkedParameters) parameter.read(query);
    });
    return invalid ? { ...invalid, status: 400 } : handshakeRefusal(() => countHandshake(key));
  }

  open(peer: WebSocketPeer, head: HttpHead): void {
    const { clock, addressOf, authorise } = this.#dependencies;
    const found = authorise(head);
    if (!("key" in found)) {
      this.#keyChecks.close(peer);
      return;
    }
    const { key } = found;
    const query = new Query(head.query);
    const hasResponses = socketParameters.responses.read(query);
    const id = ++this.#opened;
    this.#connections.set(peer, {
      id,
      keyId: key.id,
      query,
      responses: hasResponses ? [] : null,
      sent: 0,
      underWay: 0,
    });
    this.#records.add({
      id,
      keyId: key.id,
      accountId: key.accountId,
      accountName: key.accountName,
      transport: "websocket",
      protocol: "websocket",
      address: formatAddress(addressOf(head)),
      openedNs: clock.nowNs(),
    });
    this.#keyChecks.add(peer, { keyId: key.id, head });
    this.#reports ??= clock.every(reportMs, () => this.#records.reportDue(clock.monotonicNs()));
  }

  message(peer: WebSocketPeer): void {
    peer.close(unsupportedData, "expected binary messages, got a text; JSON is accepted on /relay");
  }

  binaryMessage(peer: WebSocketPeer, bytes: Uint8Array): void {
    const connection = this.#connections.get(peer);
    if (!connection) return;
    const key = this.#keyChecks.check(peer);
    if (!key) return;
    const { responses } = connection;
    if (responses && responses.length >= responsesMax) {
      peer.close(tryAgainLater, `more than ${responsesMax} responses are missing`);
      return;
    }
    const number = connection.sent + (responses?.push(null) ?? 0) - 1;
    const answer = (reason: Reason | null, text: string): void =>
      this.#answer(peer, connection, { number, reason, text });
    if (connection.underWay >= underWayMax) {
      this.#dependencies.rejected("overloaded");
      answer("overloaded", overloadedText);
      return;
    }
    void this.#submit(connection, { key, bytes }, answer);
  }

  exceeded(peer: WebSocketPeer): void {
    const connection = this.#connections.get(peer);
    if (connection) this.#pauses.begin(connection.keyId, this.#dependencies.clock.monotonicNs());
  }

  closed(peer: WebSocketPeer): void {
    const connection = this.#connections.get(peer);
    if (!connection) return;
    this.#connections.delete(peer);
    this.#keyChecks.remove(peer);
    this.#records.remove(connection.id);
    if (this.#connections.size > 0) return;
    this.#reports?.cancel();
    this.#reports = undefined;
  }

  async #submit(
    connection: Connection,
    { key, bytes }: { readonly key: ApiKey; readonly bytes: Uint8Array },
    answer: (reason: Reason | null, text: string) => void,
  ): Promise<void> {
    const { clock, submit } = this.#dependencies;
    connection.underWay++;
    const { reason, text } = await submit({
      key,
      body: bytes,
      query: connection.query,
      takesBundles: true,
      receivedNs: clock.nowNs(),
      ingress: "websocket",
    });
    connection.underWay--;
    answer(reason, text);
  }

  #answer(
    peer: WebSocketPeer,
    connection: Connection,
    {
      number,
      reason,
      text,
    }: { readonly number: number; readonly reason: Reason | null; readonly text: string },
  ): void {
    this.#records.submitted(connection.id, reason, text, this.#dependencies.clock.monotonicNs());
    const { responses } = connection;
    if (!responses) return;
    responses[number - connection.sent] = responseFrame(frameStatusOf(reason), text);
    for (let [first] = responses; first; [first] = responses) {
      responses.shift();
      connection.sent++;
      if (!peer.sendBytes(first)) return;
    }
  }
}

const overloadedText = `overloaded: more than ${underWayMax} submissions of this WebSocket are under way; wait for responses`;

function tooManySockets(): ShredwayError {
  return new ShredwayError(
    "rate_limited",
    `too many WebSockets on /relayb with this key; at most ${socketsPerKeyMax} are allowed; close one first`,
  );
}

/** A message has no method: its bytes decide between sendTransaction and sendBundle. */
function refuseMethod(query: Query): void {
  const method = query.text("method");
  if (method === undefined) return;
  throw new ShredwayError(
    "value_invalid",
    `URI parameter method: expected none on a WebSocket, because each message is a transaction or a bundle; got ${quote(method)}`,
  );
}

/** A response frame has no place for a receipt. */
function refuseReceipt(head: HttpHead, query: Query): void {
  const isInUrl = uriParameters.receipt.read(query);
  if (!isInUrl && !isReceiptHeaderSet(head.header(receiptHeader))) return;
  throw new ShredwayError(
    "value_invalid",
    "receipt: expected none on a WebSocket with binary messages, got a request for receipts; call getReceipt " +
      "afterwards",
  );
}
