// Answers of the gateway to JSON-RPC calls, as customers read them.

import type { Call } from "./call-rules.ts";
import type { KeyKind } from "./key-kinds.ts";

export type Answer =
  | { readonly result: unknown }
  | { readonly reason: string; readonly data: Readonly<Record<string, unknown>> };

/** The calls of customers, as senders.ts makes them. */
export interface SenderCalls {
  /** null: the service was killed before it answered. */
  call(
    customer: number,
    key: KeyKind,
    method: string,
    params: readonly unknown[],
  ): Promise<Answer | null>;
  /** Submits transactions, and checks the answer. */
  submit(call: Call): Promise<void>;
}

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

export function answerOf(json: unknown): Answer {
  const error = isRecord(json) ? json["error"] : undefined;
  if (!isRecord(error)) return { result: isRecord(json) ? json["result"] : undefined };
  const data = isRecord(error["data"]) ? error["data"] : {};
  return { reason: String(data["reason"]), data };
}
