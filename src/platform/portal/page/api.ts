// Calls to the portal's server and their errors as text for users.
//
// Used by the session and the views. Every failure is an ApiError; one with status 401 ends the
// session. The session cookie is not readable for scripts. The page never stores a key.

import type { SessionView } from "../types.ts";
import { session } from "./call-readers.ts";
import { type Reader, record, ShapeError, text } from "./shape-readers.ts";

export class ApiError extends Error {
  /** HTTP status; 0 if the service did not respond. */
  readonly status: number;
  readonly reason: string;
  /** Seconds to wait before a retry; null if none is given. */
  readonly retrySeconds: number | null;

  constructor(status: number, reason: string, message: string, retrySeconds: number | null = null) {
    super(message);
    this.status = status;
    this.reason = reason;
    this.retrySeconds = retrySeconds;
  }
}

/** Removes the reason at the start of a message: programs need it, users do not. */
function withoutReason(message: string, reason: string): string {
  return message.startsWith(`${reason}: `) ? message.slice(reason.length + 2) : message;
}

async function errorOf(response: Response): Promise<ApiError> {
  const seconds = Number(response.headers.get("retry-after") ?? "");
  const wait = Number.isFinite(seconds) && seconds > 0 ? seconds : null;
  try {
    const { error } = record(await response.json(), "answer");
    const details = record(error, "answer.error");
    const reason = text(details["reason"], "reason");
    const message = withoutReason(text(details["message"], "message"), reason);
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
  if (!response.ok) throw await errorOf(response);
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

/** The account's registrations and tier events of a month, as CSV. */
export async function monthExport(month: string): Promise<Blob> {
  const path = `/portal/api/export?period=${encodeURIComponent(month)}`;
  return (await request("GET", path)).blob();
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

/** Whether the same call can succeed later: no response, too many calls, or a fault of the service. */
export function canRetry(error: unknown): boolean {
  if (!(error instanceof ApiError)) return true;
  return error.status === 0 || error.status === 429 || error.status >= 500;
}

/** Returns the text that the page shows for any error. */
export function messageOf(error: unknown): string {
  if (!(error instanceof ApiError)) return String(error);
  const wait = error.retrySeconds;
  return wait === null ? error.message : `${error.message} Try again in ${Math.ceil(wait)} s.`;
}

/** Returns the text for a failed sign-in. */
export function signInMessageOf(error: unknown): string {
  if (!(error instanceof ApiError)) return messageOf(error);
  if (error.status === 401) {
    return "Invalid API key: unknown, expired, revoked, or not allowed from your address.";
  }
  return messageOf(error);
}
