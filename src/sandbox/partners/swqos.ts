// The SWQoS partner and the scheduler of the sandbox: they pass single transactions to the chain.

import { ShredwayError } from "../../core/errors.ts";
import type { HttpRequest, HttpResponse } from "../../gateway/http/types.ts";
import type { ChainApi } from "../chain/types.ts";
import { decodeBase64 } from "../rpc/bytes.ts";
import { unknownMethod } from "../rpc/dispatch.ts";
import type { Params } from "../rpc/params.ts";
import { readWire } from "../rpc/wire-params.ts";
import {
  base64CharactersMax,
  type PartnerHandler,
  type PartnerServer,
  textAnswer,
} from "./partner-endpoint.ts";

/** The transaction of a sendTransaction call. Throws ShredwayError. */
export function readTransaction(method: string, params: Params): Uint8Array {
  if (method !== "sendTransaction") throw unknownMethod(method);
  params.atMost(2);
  return readWire(params.at(0, "transaction"), params.config(1));
}

/** Accepts sendTransaction, alone or in arrays, at "/". */
export function swqosPartner(chain: ChainApi): PartnerHandler {
  return (request, endpoint) => {
    if (request.method !== "POST") return textAnswer(405, "expected POST");
    return endpoint.answerJsonRpc(request, (method, params) => {
      const signature = chain.send(readTransaction(method, params));
      endpoint.counts.transactions++;
      return signature;
    });
  };
}

function sendPlain(
  chain: ChainApi,
  wire: Uint8Array | undefined,
  endpoint: PartnerServer,
): HttpResponse {
  if (!wire) return textAnswer(400, "expected a transaction in base64");
  try {
    const signature = chain.send(wire);
    endpoint.counts.transactions++;
    return textAnswer(200, signature);
  } catch (thrown) {
    if (!(thrown instanceof ShredwayError)) throw thrown;
    return textAnswer(thrown.row.httpStatus ?? 500, `${thrown.reason}: ${thrown.message}`);
  }
}

function base64Body({ body }: HttpRequest): Uint8Array | undefined {
  return decodeBase64(Buffer.from(body).toString("latin1").trim(), base64CharactersMax);
}

/** Accepts plain bytes at "/bytes", base64 text at "/base64", JSON-RPC at "/". */
export function schedulerPartner(chain: ChainApi): PartnerHandler {
  const rpc = swqosPartner(chain);
  return (request, endpoint) => {
    if (request.method !== "POST") return textAnswer(405, "expected POST");
    if (request.path === "/bytes") return sendPlain(chain, request.body, endpoint);
    if (request.path === "/base64") return sendPlain(chain, base64Body(request), endpoint);
    return rpc(request, endpoint);
  };
}
