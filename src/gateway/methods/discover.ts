// rpc.discover: returns the OpenRPC document; OpenRPC defines the method name.
//
// Called through method-table.ts. The text equals that of GET /openrpc.json.

import { JsonText } from "../../core/json-rpc/json-text.ts";
import { openMethod } from "./method.ts";

export const discoverName = "rpc.discover";

export const discover = openMethod({
  summary: "Returns the OpenRPC document of this service.",
  result: { name: "document", schema: { type: "object" } },
  errors: [],
  example: { params: [], result: {} },
  answer: ({ descriptions }) => new JsonText(descriptions.openRpc().text),
});
