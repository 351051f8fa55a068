// Transaction statuses: the events of submissions as they occur, or their final status.
//
// Called by client.ts. A disconnection loses no event of the given signatures: their timelines are
// read after every opening, and each event is reported once.

import { readEvent } from "./answers.ts";
import { closable } from "./closable.ts";
import { ShredwayCallError } from "./error.ts";
import { Fields, isObject } from "./fields.ts";
import { readJson, writeJson } from "./json.ts";
import type {
  FilterSet,
  RateLimitNotice,
  StatusEvent,
  StatusUpdate,
  TransactionStatus,
} from "./responses.ts";
import { type FollowOptions, follow } from "./socket.ts";
import { type CallOptions, errorOf, isTransient, pauseMs, sleep, timerMs } from "./transport.ts";
import { endStates } from "./types.ts";

export interface WatchOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * Up to 256 signatures: reports each event from the first one until all have a final status. If
   * absent, reports all new events of the account, without end.
   */
  readonly signatures?: readonly string[] | undefined;
  /** Called when submissions over QUIC exceed the rate of a key of the account. */
  readonly onRateLimited?: ((limit: RateLimitNotice["rateLimited"]) => void) | undefined;
  /** Called after a reconnection. Without `signatures`, the events in between are lost. */
  readonly onReopened?: (() => void) | undefined;
}

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Limit of the whole wait in milliseconds. Default: none; the service itself gives up after some two minutes. */
  readonly timeoutMs?: number | undefined;
  /** Polling interval in milliseconds if no WebSocket is available. Default 500. */
  readonly pollMs?: number | undefined;
}

/** The part of the client that this file uses. */
export interface StatusSource {
  readonly statuses: (
    signatures: readonly string[],
    options: CallOptions,
  ) => Promise<(TransactionStatus | null)[]>;
  /** null: no WebSocket is available. */
  readonly feed: Omit<FollowOptions, "signal"> | null;
}

const pollMsUsual = 500;
const ends: ReadonlySet<string> = new Set(endStates);

/** The common part of stream messages and timeline entries; the latter also have an offset. */
function nameOf(signature: string, event: StatusEvent): string {
  const { offsetMs: _, ...facts } = event;
  return writeJson([signature, facts]);
}

/** Given signatures: the events that were reported, and the signatures with a final status. */
class ReportedEvents {
  readonly #names = new Set<string>();
  readonly #open: Set<string>;

  constructor(signatures: readonly string[]) {
    this.#open = new Set(signatures);
  }

  get isOver(): boolean {
    return this.#open.size === 0;
  }

  /** Returns whether it is a new event of a given signature. */
  take(signature: string, event: StatusEvent): boolean {
    const name = nameOf(signature, event);
    if (!this.#open.has(signature) || this.#names.has(name)) return false;
    this.#names.add(name);
    if (ends.has(event.kind)) this.#open.delete(signature);
    return true;
  }
}

/** Retries while the service is unavailable. */
async function withRetries(
  { statuses }: StatusSource,
  signatures: readonly string[],
  signal: AbortSignal | undefined,
): Promise<(TransactionStatus | null)[]> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await statuses(signatures, { signal, retries: 0 });
    } catch (error) {
      if (!isTransient(error)) throw error;
      await sleep(pauseMs(error, attempt), signal);
    }
  }
}

type Message =
  | { readonly kind: "filter" }
  | { readonly kind: "limit"; readonly limit: RateLimitNotice["rateLimited"] }
  | ({ readonly kind: "event" } & StatusUpdate);

function readLimit(value: unknown): RateLimitNotice["rateLimited"] {
  const fields = new Fields<RateLimitNotice["rateLimited"]>(value, "/status.rateLimited");
  return {
    at: fields.text("at"),
    ingress: fields.text("ingress"),
    protocol: fields.text("protocol"),
    address: fields.text("address"),
    apiKey: fields.text("apiKey"),
    submissions: fields.number("submissions"),
    message: fields.text("message"),
  };
}

function readMessage(text: string): Message {
  const value = readJson(text);
  const error = isObject(value) ? errorOf(value["error"], null) : null;
  if (error) throw error;
  const fields = new Fields<StatusUpdate & FilterSet & RateLimitNotice>(value, "/status");
  if (fields.has("filter")) return { kind: "filter" };
  if (fields.has("rateLimited")) {
    return { kind: "limit", limit: readLimit(fields.value("rateLimited")) };
  }
  const event = readEvent(fields.value("event"), "/status.event");
  return { kind: "event", signature: fields.text("signature"), event };
}

async function* watchNamed(
  source: StatusSource,
  feed: FollowOptions,
  signatures: readonly string[],
  onRateLimited: WatchOptions["onRateLimited"],
): AsyncGenerator<StatusUpdate> {
  const reported = new ReportedEvents(signatures);
  let isFiltered = false;
  for await (const text of follow(feed)) {
    if (text === null) {
      isFiltered = false;
      continue;
    }
    const message = readMessage(text);
    if (message.kind === "limit") {
      onRateLimited?.(message.limit);
    } else if (message.kind === "event") {
      // Events before the filter applies are in the timelines, which are read next.
      const { signature, event } = message;
      if (isFiltered && reported.take(signature, event)) yield { signature, event };
    } else if (!isFiltered) {
      isFiltered = true;
      for (const status of await withRetries(source, signatures, feed.signal)) {
        for (const timed of status?.events ?? []) {
          const { offsetMs: _, ...event } = timed;
          const { signature = "" } = status ?? {};
          if (reported.take(signature, event)) yield { signature, event };
        }
      }
    }
    if (reported.isOver) return;
  }
}

async function* watchAll(
  feed: FollowOptions,
  { onReopened, onRateLimited }: Pick<WatchOptions, "onReopened" | "onRateLimited">,
): AsyncGenerator<StatusUpdate> {
  let openings = 0;
  for await (const text of follow(feed)) {
    if (text === null) {
      if (openings++ > 0) onReopened?.();
      continue;
    }
    const message = readMessage(text);
    if (message.kind === "limit") onRateLimited?.(message.limit);
    if (message.kind === "event") yield { signature: message.signature, event: message.event };
  }
}

/** `feed` of StatusSource. */
export function watchStatuses(
  source: StatusSource & { readonly feed: NonNullable<StatusSource["feed"]> },
  { signatures, signal, onReopened, onRateLimited }: WatchOptions,
): AsyncGenerator<StatusUpdate> {
  const hello = writeJson({ signatures: signatures ?? null });
  return closable(signal, (whileOpen) => {
    const feed = { ...source.feed, hello, signal: whileOpen };
    return signatures
      ? watchNamed(source, feed, signatures, onRateLimited)
      : watchAll(feed, { onReopened, onRateLimited });
  });
}

// ---- final status ------------------------------------------------------------------------------

function isOver(status: TransactionStatus): boolean {
  return status.state !== "open";
}

function known(
  statuses: readonly (TransactionStatus | null)[],
  signatures: readonly string[],
): TransactionStatus[] {
  return statuses.map((status, i) => {
    if (status) return status;
    throw new ShredwayCallError(
      `submission_unknown: expected a submission of this account, got ${signatures[i] ?? ""}`,
      { reason: "submission_unknown" },
    );
  });
}

/** Settles when all have a final status, or earlier if the stream is not available. */
async function receiveEnds(
  source: StatusSource,
  signatures: readonly string[],
  signal: AbortSignal | undefined,
): Promise<void> {
  const { feed } = source;
  if (!feed) return;
  try {
    const updates = watchStatuses({ ...source, feed }, { signatures, signal });
    while (!(await updates.next()).done);
  } catch (error) {
    const isStreams = error instanceof ShredwayCallError && error.reason === "websocket_refused";
    if (!isStreams && !isTransient(error)) throw error;
  }
}

async function untilEnded(
  source: StatusSource,
  signatures: readonly string[],
  { signal, pollMs = pollMsUsual }: WaitOptions,
): Promise<TransactionStatus[]> {
  let statuses = known(await withRetries(source, signatures, signal), signatures);
  if (statuses.every(isOver)) return statuses;
  await receiveEnds(source, signatures, signal);
  for (;;) {
    statuses = known(await withRetries(source, signatures, signal), signatures);
    if (statuses.every(isOver)) return statuses;
    await sleep(pollMs, signal);
  }
}

/** The final statuses, in the order of the signatures. */
export async function waitForEnds(
  source: StatusSource,
  signatures: readonly string[],
  options: WaitOptions,
): Promise<TransactionStatus[]> {
  const { signal, timeoutMs } = options;
  if (timeoutMs === undefined) return untilEnded(source, signatures, options);
  signal?.throwIfAborted();
  const controller = new AbortController();
  const abort = (): void => controller.abort(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  const timer = setTimeout(() => {
    const message = `timeout: expected a final status within ${timeoutMs} ms, got none`;
    controller.abort(new ShredwayCallError(message, { reason: "timeout" }));
  }, timerMs(timeoutMs));
  try {
    return await untilEnded(source, signatures, { ...options, signal: controller.signal });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}
