// A test node that answers every call with the test's response, and records the calls.

import { ShredwayError } from "../../../src/core/errors.ts";
import { type CallParams, JsonText } from "../../../src/core/json-rpc/json-text.ts";
import type { NodeAnswer, NodeCalls } from "../../../src/core/json-rpc/node.ts";

export class NodeStandIn implements NodeCalls {
  readonly requests: [string, CallParams][] = [];
  answer: NodeAnswer | ShredwayError = { result: new JsonText("1") };

  async call(method: string, params: CallParams): Promise<NodeAnswer> {
    this.requests.push([method, params]);
    if (this.answer instanceof ShredwayError) throw this.answer;
    return this.answer;
  }
}
