// The pages for operators: /metrics, /health/live and /health/ready.
//
// Created twice by src/app/operations.ts: for the listeners of the gateway, where operations.allow restricts
// the readers, and for separate listeners, where every client may read.

import type { HttpHead, HttpRequest, HttpResponse } from "../../gateway/http/types.ts";
import type { Pages, Path } from "../../gateway/methods/dependencies.ts";
import { contentTypes, type Format, formatFor } from "./exposition.ts";

/** One condition of readiness. */
export interface Check {
  readonly name: string;
  readonly ok: boolean;
  /** true: a failure makes the service not ready. false: the service is ready but degraded. */
  readonly critical: boolean;
  /** The finding, as text. */
  readonly detail: string;
}

interface OperatorPagesDependencies {
  readonly mayRead: (head: HttpHead) => boolean;
  readonly metrics: (format: Format) => string;
  readonly checks: () => readonly Check[];
}

const methods = ["GET", "HEAD"] as const;
const noStore = { "cache-control": "no-store" } as const;

function text(status: number, contentType: string, body: string): HttpResponse {
  return { status, headers: { ...noStore, "content-type": contentType }, body };
}

export function isReady(checks: readonly Check[]): boolean {
  return checks.every(({ ok, critical }) => ok || !critical);
}

export class OperatorPages implements Pages {
  /** The list of paths for clients omits these pages. */
  readonly listed: readonly string[] = [];
  readonly webSockets = {};
  readonly #mayRead: (head: HttpHead) => boolean;
  readonly #paths: ReadonlyMap<string, Path>;

  constructor({ mayRead, metrics, checks }: OperatorPagesDependencies) {
    this.#mayRead = mayRead;
    const path = (handle: Path["handle"]): Path => ({ methods, handle });
    this.#paths = new Map([
      ["/metrics", path((request) => answerMetrics(request, metrics))],
      ["/health/live", path(() => text(200, "text/plain", "ok\n"))],
      ["/health/ready", path(() => answerReady(checks()))],
    ]);
  }

  find(path: string, head: HttpHead): Path | undefined {
    const found = this.#paths.get(path);
    return found && this.#mayRead(head) ? found : undefined;
  }

  /** Handles a request on a listener that has only these pages. */
  handle(request: HttpRequest): HttpResponse | Promise<HttpResponse> {
    const path = this.find(request.path, request);
    if (!path) {
      const known = [...this.#paths.keys()].join(", ");
      return refused(404, "path_unknown", `expected one of ${known}`);
    }
    if (path.methods.includes(request.method)) return path.handle(request);
    const allow = path.methods.join(", ");
    const answer = refused(405, "http_method", `expected ${allow}`);
    return { ...answer, headers: { ...answer.headers, allow } };
  }
}

function refused(status: number, reason: string, message: string): HttpResponse {
  return text(status, "application/json", JSON.stringify({ error: { reason, message } }));
}

function answerMetrics(head: HttpHead, metrics: (format: Format) => string): HttpResponse {
  const format = formatFor(head.header("accept"));
  const answer = text(200, contentTypes[format], metrics(format));
  return { ...answer, headers: { ...answer.headers, vary: "accept" } };
}

function answerReady(checks: readonly Check[]): HttpResponse {
  const ready = isReady(checks);
  const body = JSON.stringify({ ready, checks });
  return text(ready ? 200 : 503, "application/json", body);
}
