// Checks responses against the descriptions of the gateway's methods: results by schema, reasons by
// declaration.
//
// Called for each call that a test makes over HTTP, so that every tested response is checked.

import { Ajv } from "ajv";
import addFormats from "ajv-formats";
import { type Reason, reasons } from "../../../src/core/errors.ts";
import { readJson, writeJson } from "../../../src/core/json-rpc/json-text.ts";
import { isObject } from "../../../src/core/values.ts";
import { methods } from "../../../src/gateway/methods/method-table.ts";

type Validate = ReturnType<Ajv["compile"]>;

const ajv = new Ajv({ strict: true, allErrors: true });
addFormats.default(ajv);

export function schemaCheck(schema: unknown): Validate {
  const plain: unknown = JSON.parse(writeJson(schema));
  if (!isObject(plain)) throw new Error("expected a schema, got none");
  return ajv.compile(plain);
}

const results = new Map<string, Validate>();

/** Throws if the result does not match the method's description. */
export function checkResult(name: string, result: unknown): void {
  const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
  if (!method) return;
  const validate = results.get(name) ?? schemaCheck(method.result.schema);
  results.set(name, validate);
  if (validate(result)) return;
  const violations = JSON.stringify(validate.errors, null, 1);
  throw new Error(
    `${name}: expected a result of its schema, got ${JSON.stringify(result)}: ${violations}`,
  );
}

/** Throws if the method does not declare the reason of this error. */
export function checkReason(name: string, error: unknown): Reason | null {
  const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
  const data = isObject(error) ? error["data"] : undefined;
  const named = isObject(data) ? data["reason"] : undefined;
  const reason = reasons.find((each) => each === named);
  if (!method || reason === undefined) return null;
  if (method.errors.includes(reason)) return reason;
  throw new Error(`${name}: expected one of its declared reasons, got ${reason}`);
}

function checkAnswer(call: unknown, answer: unknown): void {
  if (!isObject(call) || !isObject(answer) || typeof call["method"] !== "string") return;
  const { method } = call;
  if ("result" in answer) checkResult(method, answer["result"]);
  else if (!isOfPath(answer["error"])) checkReason(method, answer["error"]);
}

/** Rejected because of its path, whatever the method is. */
function isOfPath(error: unknown): boolean {
  const data = isObject(error) ? error["data"] : undefined;
  return isObject(data) && ["path_unknown", "http_method"].includes(String(data["reason"]));
}

/** `body` as sent; a body that is not JSON-RPC is not checked. */
export function checkAnswers(body: string | Uint8Array, answer: unknown): void {
  let sent: unknown;
  try {
    sent = readJson(typeof body === "string" ? body : Buffer.from(body).toString());
  } catch {
    return;
  }
  if (!Array.isArray(sent)) checkAnswer(sent, answer);
  else if (Array.isArray(answer))
    for (const [i, call] of sent.entries()) checkAnswer(call, answer[i]);
}
