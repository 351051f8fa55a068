// What becomes of submissions: as events while they come, or as the end that is waited for.
//
// Called by client.ts. A cut of the stream loses nothing of signatures that were named: their timelines are
// read after every opening, and each event is told once.

import { readEvent } from "./answers.ts";
import { ShredwayCallError } from "./error.ts";
import { Fields, isObject } from "./fields.ts";
import { readJson, writeJson } from "./json.ts";
import type { FilterSet, StatusEvent, StatusUpdate, TransactionStatus } from "./responses.ts";
import { type FollowOptions, follow } from "./socket.ts";
import { type CallOptions, errorOf, isTransient, pauseMs, sleep } from "./transport.ts";
import { endStates } from "./types.ts";

export interface WatchOptions {
  readonly signal?: AbortSignal | undefined;
  /**
   * Up to 256: each event of these from the first one on, until all of them have ended. Absent: what
   * happens to all of the account from now on, without end.
   */
  readonly signatures?: readonly string[] | undefined;
  /** Called when a cut stream is open again: of all of the account, what happened meanwhile is not told. */
  readonly onReopened?: (() => void) | undefined;
}

export interface WaitOptions {
  readonly signal?: AbortSignal | undefined;
  /** Default: as long as it takes; the service itself gives up after some two minutes. */
  readonly timeoutMs?: number | undefined;
  /** Between two questions where there is no WebSocket. Default 500. */
  readonly pollMs?: number | undefined;
}

/** The client as it is used here. */
export interface StatusSource {
  readonly statuses: (
    signatures: readonly string[],
    options: CallOptions,
  ) => Promise<(TransactionStatus | null)[]>;
  /** null: there is no WebSocket. */
  readonly feed: Omit<FollowOptions, "signal"> | null;
}

const pollMsUsual = 500;
const ends: ReadonlySet<string> = new Set(endStates);

/** The same for the stream and for timelines, which tell an offset besides. */
function nameOf(signature: string, event: StatusEvent): string {
  const { offsetMs: _, ...facts } = event;
  return writeJson([signature, facts]);
}

/** Named signatures: which of their events were told, and which of them have ended. */
class Told {
  readonly #names = new Set<string>();
  readonly #open: Set<string>;

  constructor(signatures: readonly string[]) {
    this.#open = new Set(signatures);
  }

  get isOver(): boolean {
    return this.#open.size === 0;
  }

  /** Whether it is news of one that is waited for. */
  take(signature: string, event: StatusEvent): boolean {
    const name = nameOf(signature, event);
    if (!this.#open.has(signature) || this.#names.has(name)) return false;
    this.#names.add(name);
    if (ends.has(event.kind)) this.#open.delete(signature);
    return true;
  }
}

/** Tries for as long as the service cannot answer at present. */
async function patiently(
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

type Message = { readonly isFilter: true } | ({ readonly isFilter: false } & StatusUpdate);

function readMessage(text: string): Message {
  const value = readJson(text);
  const error = isObject(value) ? errorOf(value["error"], null) : null;
  if (error) throw error;
  const fields = new Fields<StatusUpdate & FilterSet>(value, "/status");
  if (fields.has("filter")) return { isFilter: true };
  const event = readEvent(fields.value("event"), "/status.event");
  return { isFilter: false, signature: fields.text("signature"), event };
}

async function* watchNamed(
  source: StatusSource,
  feed: FollowOptions,
  signatures: readonly string[],
): AsyncGenerator<StatusUpdate> {
  const told = new Told(signatures);
  let isFiltered = false;
  for await (const text of follow(feed)) {
    if (text === null) {
      isFiltered = false;
      continue;
    }
    const message = readMessage(text);
    if (!message.isFilter) {
      // What comes before the filter holds stands in the timelines that are read then.
      const { signature, event } = message;
      if (isFiltered && told.take(signature, event)) yield { signature, event };
    } else if (!isFiltered) {
      isFiltered = true;
      for (const status of await patiently(source, signatures, feed.signal)) {
        for (const timed of status?.events ?? []) {
          const { offsetMs: _, ...event } = timed;
          const { signature = "" } = status ?? {};
          if (told.take(signature, event)) yield { signature, event };
        }
      }
    }
    if (told.isOver) return;
  }
}

async function* watchAll(
  feed: FollowOptions,
  onReopened: () => void,
): AsyncGenerator<StatusUpdate> {
  let openings = 0;
  for await (const text of follow(feed)) {
    if (text === null) {
      if (openings++ > 0) onReopened();
      continue;
    }
    const message = readMessage(text);
    if (!message.isFilter) yield { signature: message.signature, event: message.event };
  }
}

/** `feed` as of StatusSource. */
export function watchStatuses(
  source: StatusSource & { readonly feed: NonNullable<StatusSource["feed"]> },
  { signatures, signal, onReopened = () => undefined }: WatchOptions,
): AsyncGenerator<StatusUpdate> {
  const hello = writeJson({ signatures: signatures ?? null });
  const feed = { ...source.feed, hello, signal };
  return signatures ? watchNamed(source, feed, signatures) : watchAll(feed, onReopened);
}

// ---- the end ---------------------------------------------------------------------------------

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

/** Settles when they have ended; early where the stream cannot be had. */
async function hearEnds(
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
  let statuses = known(await patiently(source, signatures, signal), signatures);
  if (statuses.every(isOver)) return statuses;
  await hearEnds(source, signatures, signal);
  for (;;) {
    statuses = known(await patiently(source, signatures, signal), signatures);
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
    const message = `timeout: expected an end within ${timeoutMs} ms, got none`;
    controller.abort(new ShredwayCallError(message, { reason: "timeout" }));
  }, timeoutMs);
  try {
    return await untilEnded(source, signatures, { ...options, signal: controller.signal });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener("abort", abort);
  }
}
