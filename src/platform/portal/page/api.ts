// Calls to the portal's server: what to ask, what comes back, and what went wrong in words.
//
// Used by the session and the views. Every failure is an ApiError; one with status 401 ends the session.
// The cookie is the browser's business: the page never sees it, and never keeps a key.

import type { SessionView } from "../types.ts";
import { type Reader, record, ShapeError, text } from "./shape.ts";
import { session } from "./wire.ts";

export class ApiError extends Error {
  /** HTTP; 0: no answer came. */
  readonly status: number;
  readonly reason: string;
  /** What the service asks to be waited for; null: nothing. */
  readonly retrySeconds: number | null;

  constructor(status: number, reason: string, message: string, retrySeconds: number | null = null) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retrySeconds = retrySeconds;
  }
}

/** Messages begin with their reason, for programs; people need it once. */
function withoutReason(message: string, reason: string): string {
  return message.startsWith(`${reason}: `) ? message.slice(reason.length + 2) : message;
}

async function refusalOf(response: Response): Promise<ApiError> {
  const seconds = Number(response.headers.get("retry-after") ?? "");
  const wait = Number.isFinite(seconds) && seconds > 0 ? seconds : null;
  try {
    const { error } = record(await response.json(), "answer");
    const told = record(error, "answer.error");
    const reason = text(told["reason"], "reason");
    const message = withoutReason(text(told["message"], "message"), reason);
    return new ApiError(response.status, reason, message, wait);
  } catch {
    const message = `The service responded with HTTP ${response.status} without a reason.`;
    return new ApiError(response.status, "internal", message, wait);
  }
}

async function request(method: string, path: string, body?: unknown): Promise<Response> {
  const init: RequestInit = { method, cache: "no-store", credentials: "same-origin" };
  if (body !== undefined) {
    init.headers = { "content-type": "application/json" };
    init.body = JSON.stringify(body);
  }
  let response: Response;
  try {
    response = await fetch(path, init);
  } catch {
    throw new ApiError(0, "unreachable", "The service does not respond.");
  }
  if (!response.ok) throw await refusalOf(response);
  return response;
}

async function answerOf<T>(response: Response, reader: Reader<T>): Promise<T> {
  try {
    return reader(await response.json(), "answer");
  } catch (error) {
    const detail = error instanceof ShapeError ? ` (${error.message})` : "";
    throw new ApiError(
      response.status,
      "page_outdated",
      `This page cannot read the response of the service${detail}. Reload the page.`,
    );
  }
}

const sessionPath = "/portal/api/session";

export async function openSession(key: string): Promise<SessionView> {
  return answerOf(await request("POST", sessionPath, { key }), session);
}

export async function presentSession(): Promise<SessionView> {
  return answerOf(await request("GET", sessionPath), session);
}

export async function closeSession(): Promise<void> {
  await request("DELETE", sessionPath);
}

/** Calls a method with the session's key. */
export async function call<T>(
  method: string,
  params: readonly unknown[],
  reader: Reader<T>,
): Promise<T> {
  const response = await request("POST", "/portal/api/call", { method, params });
  const result: Reader<T> = (value, place) => reader(record(value, place)["result"], "result");
  return answerOf(response, result);
}

/** What is shown of a failure, whatever it was. */
export function messageOf(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  const wait = error.retrySeconds;
  return wait === null ? error.message : `${error.message} Try again in ${Math.ceil(wait)} s.`;
}

/** Refusals of keys tell what to do. */
export function signInMessageOf(error: unknown): string {
  if (!(error instanceof ApiError)) return messageOf(error);
  if (error.status === 401) {
    return "Invalid API key: unknown, expired, revoked, or not allowed from your address.";
  }
  return messageOf(error);
}
