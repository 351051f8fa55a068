// Dispatches a call to the method of its name.
//
// Called by the endpoint for every call over HTTP. Unknown names get the error -32601; the JSON-RPC
// framing handles the methods' exceptions.

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
