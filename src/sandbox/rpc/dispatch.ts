// From a method's name to its result.
//
// Called by the endpoint for every call over HTTP. Answers -32601 for names that are not in the
// table; everything that a method throws goes on to the framing.

import { quote, ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { MethodContext } from "./method.ts";
import { methods } from "./methods/table.ts";
import { Params } from "./params.ts";

export function unknownMethod(name: string): ShredwayError {
  return new ShredwayError("method_unknown", `Method not found: ${quote(name)}`);
}

/** Throws ShredwayError. */
export function dispatch(context: MethodContext, name: string, values: readonly Json[]): unknown {
  const method = Object.hasOwn(methods, name) ? methods[name] : undefined;
  if (!method) throw unknownMethod(name);
  const params = new Params(values);
  params.atMost(method.paramsMax);
  return method.run(context, params);
}
