// getNonce: the present value of a durable nonce, either of the key's managed account or of any
// account.
//
// Called through method-table.ts. The parameter may be an API key: it is compared with the caller's own
// key and never returned. Another key gets the same error as an invalid text.

import type { NonceInfo } from "../../client/responses.ts";
import { ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import type { Nonces } from "../nonces/types.ts";
import { closed, publicKey } from "../schema/json-schema.ts";
import { type ArgsOf, required } from "../schema/params.ts";
import { samples } from "../schema/samples.ts";
import { anything } from "../schema/shapes.ts";
import { withRetryAfter } from "./destinations.ts";
import { type Call, type MethodTable, method } from "./method.ts";

/** Maximum length of 32 bytes in base58. */
const addressLengthMax = 44;

/** `name`: the calling method, for the message. Throws ShredwayError "upstream_missing". */
export function noncesOf({ dependencies }: Pick<Call, "dependencies">, name: string): Nonces {
  if (dependencies.nonces) return dependencies.nonces;
  throw new ShredwayError(
    "upstream_missing",
    `${name} needs an RPC node, but none is configured; set solana.rpc`,
  );
}

function isAddress({ dependencies }: Pick<Call, "dependencies">, text: string): boolean {
  const isShort = text.length > 0 && text.length <= addressLengthMax;
  return isShort && dependencies.base58.decode(text)?.length === 32;
}

function find(call: Call, given: Json | undefined): Promise<NonceInfo> {
  const nonces = noncesOf(call, "getNonce");
  const { dependencies, key } = call;
  if (typeof given === "string") {
    if (dependencies.keys.find(given, dependencies.clock.nowNs())?.id === key.id) {
      return nonces.managed({ accountId: key.accountId, keyId: key.id });
    }
    if (isAddress(call, given)) return nonces.of(given, key.accountId);
  }
  // The value is not quoted: it may be a key.
  const problem = given === undefined ? "missing value" : "invalid value";
  throw new ShredwayError(
    "value_invalid",
    `params[0]: ${problem}; expected the API key of this call, or the public key of a nonce account ` +
      "(32 bytes in base58)",
  );
}

const params = {
  account: required(
    anything({ type: "string", minLength: 1, examples: [samples.nonceAccount] }),
    "the API key of this call, or the public key of a nonce account",
  ),
};

async function nonce(call: Call, { account }: ArgsOf<typeof params>): Promise<NonceInfo> {
  const info = await withRetryAfter(call, find(call, account));
  return {
    nonce: info.nonce,
    nonceAccount: info.nonceAccount,
    nonceAuthority: info.nonceAuthority,
  };
}

export const nonceMethods: MethodTable = {
  getNonce: method({
    scopes: ["submit"],
    summary: "Returns the current value of a durable nonce.",
    description:
      "With the caller's API key: the nonce account that the service manages for this key. It is created " +
      "on the chain at the first call.",
    available: (call) => noncesOf(call, "getNonce"),
    params,
    result: {
      name: "nonce",
      schema: closed<NonceInfo>("Nonce", {
        nonce: { ...publicKey, description: "nonce value, used in place of a recent blockhash" },
        nonceAccount: publicKey,
        nonceAuthority: publicKey,
      }),
    },
    errors: [
      "upstream_missing",
      "nonce_invalid",
      "nonce_unavailable",
      "nonce_pending",
      "nonce_failed",
      "rpc_failed",
      "store_failed",
    ],
    example: {
      params: [samples.nonceAccount],
      result: {
        nonce: samples.nonce,
        nonceAccount: samples.nonceAccount,
        nonceAuthority: samples.nonceAuthority,
      },
    },
    run: nonce,
  }),
};
