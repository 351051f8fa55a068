// Senders over HTTP in the dialects of others: JSON-RPC, Jito's block engine, Astralane, text and bytes.
//
// Facts of November 2026. Jito: `{url}/api/v1/transactions`, key in `x-jito-auth`, `bundleOnly=true` for
// protection from reverts. Astralane: JSON-RPC at `/iris` with the key as `api-key`. Text and bytes: the
// transaction is the body. Responses are untrusted: their size is limited.

import { readBounded } from "../../core/bounded-body.ts";
import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import { withTimeout } from "../../core/request-timeout.ts";
import { isObject } from "../../core/values.ts";
import type { SenderPlan } from "./plan.ts";
import type { Sender, SubmissionResult } from "./sender.ts";

const answerBytesMax = 64 * 1024;
const messageCharactersMax = 200;

type HttpDialect = "rpc" | "jito" | "astralane" | "text" | "bytes";

function withPath(url: URL, path: string): URL {
  const changed = new URL(url);
  changed.pathname = path;
  return changed;
}

/** URL of submissions. */
function submissionUrl({ url, dialect, apiKey, switches }: SenderPlan): URL {
  if (dialect === "jito") {
    const base = url.pathname.replace(/\/+$/, "").replace(/\/api\/v1(\/transactions)?$/, "");
    const target = withPath(url, `${base}/api/v1/transactions`);
    if (switches.includes("bundle-only")) target.searchParams.set("bundleOnly", "true");
    return target;
  }
  if (dialect === "astralane") {
    const target = withPath(url, url.pathname === "/" ? "/iris" : url.pathname);
    if (apiKey !== null) target.searchParams.set("api-key", apiKey);
    if (switches.includes("mev-protect")) target.searchParams.set("mev-protect", "true");
    return target;
  }
  return url;
}

/** fetch hides the reason of a failed connection in the cause. */
function causeText(error: unknown): string {
  return messageOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
}

function errorResult(reason: string, message: string, hasResponse: boolean): SubmissionResult {
  const bounded = message.slice(0, messageCharactersMax);
  return { error: { reason, message: bounded }, hasResponse };
}

/** The reason word of a service that sends one, else the code. */
function rpcError(error: Readonly<Record<string, unknown>>): SubmissionResult {
  const { code, message, data } = error;
  const word = isObject(data) && typeof data["reason"] === "string" ? data["reason"] : null;
  return errorResult(word ?? `code ${String(code)}`, String(message), true);
}

export class HttpSender implements Sender {
  readonly #plan: SenderPlan;
  readonly #url: URL;
  readonly #timeoutMs: number;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(plan: SenderPlan & { readonly dialect: HttpDialect }, timeoutMs: number) {
    const { dialect, apiKey, headers } = plan;
    this.#plan = plan;
    this.#url = submissionUrl(plan);
    this.#timeoutMs = timeoutMs;
    const types = { text: "text/plain", bytes: "application/octet-stream" };
    this.#headers = {
      "content-type":
        dialect === "text" || dialect === "bytes" ? types[dialect] : "application/json",
      ...(dialect === "jito" && apiKey !== null && { "x-jito-auth": apiKey }),
      ...headers,
    };
  }

  /** Any response will do: it shows that the connection is open. */
  async warmUp(): Promise<void> {
    const body = JSON.stringify({ jsonrpc: "2.0", id: 0, method: "getHealth", params: [] });
    const isPlain = this.#plan.dialect === "text" || this.#plan.dialect === "bytes";
    try {
      await this.#fetch(this.#url, isPlain ? null : body);
    } catch (error) {
      const message = `sender ${this.#plan.name}: no response from ${this.#url.host}: ${causeText(error)}`;
      throw new ShredwayError("rpc_failed", message);
    }
  }

  async tipAccounts(): Promise<readonly string[]> {
    if (this.#plan.dialect !== "jito") return [];
    const url = new URL(this.#url);
    url.pathname = url.pathname.replace(/transactions$/, "getTipAccounts");
    url.searchParams.delete("bundleOnly");
    const call = { jsonrpc: "2.0", id: 1, method: "getTipAccounts", params: [] };
    const { text } = await this.#fetch(url, JSON.stringify(call));
    const answer: unknown = JSON.parse(text);
    const result = isObject(answer) ? answer["result"] : null;
    return Array.isArray(result) ? result.filter((each) => typeof each === "string") : [];
  }

  prepare(wire: Uint8Array, signature: string): () => Promise<SubmissionResult> {
    const { dialect } = this.#plan;
    const base64 = Buffer.from(wire).toString("base64");
    if (dialect === "bytes") return () => this.#submit(wire, signature);
    if (dialect === "text") return () => this.#submit(base64, signature);
    const { maxRetries } = this.#plan;
    const options = {
      encoding: "base64",
      skipPreflight: true,
      ...(maxRetries !== null && { maxRetries }),
    };
    const call = { jsonrpc: "2.0", id: 1, method: "sendTransaction", params: [base64, options] };
    const body = JSON.stringify(call);
    return () => this.#submit(body, signature);
  }

  close(): void {
    // The connections belong to the process and close when they are idle.
  }

  async #submit(body: string | Uint8Array, signature: string): Promise<SubmissionResult> {
    try {
      const { status, text } = await this.#fetch(this.#url, body);
      return this.#read(status, text, signature);
    } catch (error) {
      if (error instanceof Error && error.name === "TimeoutError") {
        return errorResult("timeout", `no response within ${this.#timeoutMs} ms`, false);
      }
      return errorResult("unreachable", causeText(error), false);
    }
  }

  #read(status: number, text: string, signature: string): SubmissionResult {
    const { dialect } = this.#plan;
    const isPlain = dialect === "text" || dialect === "bytes";
    let answer: unknown;
    try {
      answer = JSON.parse(text);
    } catch {
      answer = null;
    }
    if (isObject(answer) && isObject(answer["error"])) return rpcError(answer["error"]);
    if (status !== 200) return errorResult(`http ${status}`, text, true);
    if (isPlain) return { error: null, hasResponse: true };
    const result = isObject(answer) ? answer["result"] : undefined;
    if (result === signature) return { error: null, hasResponse: true };
    return errorResult("answer_invalid", `expected the signature, got ${quote(text)}`, true);
  }

  async #fetch(
    url: URL,
    body: string | Uint8Array | null,
  ): Promise<{ readonly status: number; readonly text: string }> {
    return withTimeout(this.#timeoutMs, async (signal) => {
      const response = await fetch(url, {
        method: body === null ? "GET" : "POST",
        headers: this.#headers,
        redirect: "error", // a key must not reach another host
        signal,
        ...(body !== null && { body: typeof body === "string" ? body : new Uint8Array(body) }),
      });
      const text = await readBounded(response, { bytesMax: answerBytesMax, signal });
      return { status: response.status, text };
    });
  }
}
