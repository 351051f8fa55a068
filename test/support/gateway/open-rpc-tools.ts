// The public tools of OpenRPC, loaded without their types, which do not compile under this project's rules.

import { createRequire } from "node:module";
import { isObject } from "../../../src/core/values.ts";

const load = createRequire(import.meta.url);

function functionOf(name: string, member: string): (...args: readonly unknown[]) => unknown {
  const loaded: unknown = load(name);
  const found = isObject(loaded) ? loaded[member] : undefined;
  if (typeof found !== "function") throw new Error(`expected ${name} to have ${member}`);
  return (...args) => {
    const result: unknown = Reflect.apply(found, loaded, args);
    return result;
  };
}

/** true, or the error. */
export function openRpcVerdict(document: unknown): unknown {
  const validate = functionOf("@open-rpc/schema-utils-js", "validateOpenRPCDocument");
  const verdict = validate(structuredClone(document));
  return verdict instanceof Error ? verdict.message : verdict;
}

/** Resolves all references. Rejects an invalid document. */
export async function parsedOpenRpc(document: unknown): Promise<unknown> {
  const parse = functionOf("@open-rpc/schema-utils-js", "parseOpenRPCDocument");
  return parse(structuredClone(document));
}

/** One call of the tool, with its verdict. */
export interface CoverageCall {
  readonly methodName: string;
  readonly title: string;
  readonly params: readonly unknown[];
  readonly valid: boolean;
  readonly reason: string | undefined;
  readonly result: unknown;
  readonly error: unknown;
}

/** The tool's own rule for examples. */
export function examplesRule(): unknown {
  const loaded: unknown = load("@open-rpc/test-coverage/build/rules/examples-rule");
  const Made = isObject(loaded) ? loaded["default"] : undefined;
  if (typeof Made !== "function") throw new Error("expected a rule for examples");
  const rule: unknown = Reflect.construct(Made, []);
  return rule;
}

const silent = { onBegin() {}, onTestBegin() {}, onTestEnd() {}, onEnd() {} };

/** The tool's own reports are silent: its findings are returned. */
export async function runCoverage(
  openrpcDocument: unknown,
  transport: (url: string, method: string, params: unknown) => Promise<unknown>,
  rules: readonly unknown[],
): Promise<CoverageCall[]> {
  const run = functionOf("@open-rpc/test-coverage", "default");
  const calls: unknown = await run({ openrpcDocument, transport, rules, reporters: [silent] });
  if (!Array.isArray(calls)) throw new Error("expected a list of calls");
  return calls
    .filter(isObject)
    .map(({ methodName, title, params, valid, reason, result, error }) => ({
      methodName: String(methodName),
      title: String(title),
      params: Array.isArray(params) ? params : [],
      valid: valid === true,
      reason: typeof reason === "string" ? reason : undefined,
      result,
      error,
    }));
}

/**
 * The tool's own generator of parameters from schemas, judged by `isRight` instead of only by
 * results.
 */
export function fakerRule(isRight: (call: Record<string, unknown>) => string | null): unknown {
  const loaded: unknown = load("@open-rpc/test-coverage/build/rules/json-schema-faker-rule");
  const Made = isObject(loaded) ? loaded["default"] : undefined;
  if (typeof Made !== "function") throw new Error("expected a rule for made-up parameters");
  const rule: unknown = Reflect.construct(Made, [{ numCalls: 5 }]);
  const getCalls = isObject(rule) ? rule["getCalls"] : undefined;
  if (typeof getCalls !== "function") throw new Error("expected a rule that makes calls");
  return {
    getTitle: () => "parameters made of the schemas",
    getCalls: (document: unknown, method: object) => {
      const calls: unknown = Reflect.apply(getCalls, rule, [document, { ...method, examples: [] }]);
      return calls;
    },
    validateCall: (call: Record<string, unknown>) => {
      const wrong = isRight(call);
      return Object.assign(call, { valid: wrong === null, reason: wrong ?? undefined });
    },
  };
}
