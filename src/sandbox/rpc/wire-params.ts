// Transactions and messages in parameters: decoded and bounded, with their names in errors.
//
// Called by sendTransaction, simulateTransaction and getFeeForMessage. The limits are the node's:
// 1,683 characters of base58, 5,464 of base64 (a v1 transaction of 4,096 bytes).

import { ShredwayError } from "../../core/errors.ts";
import { parseTransaction, signatureBytes, type WireTransaction } from "../chain/wire.ts";
import { decodeBase58, decodeBase64 } from "./bytes.ts";
import { type Config, invalidParams, type Value } from "./params.ts";

const base58CharactersMax = 1683;
const base64CharactersMax = 5464;

/** The wire bytes. Default encoding: base58, as in the node. */
export function readWire(value: Value, config: Config): Uint8Array {
  const encoding = config.encoding(["base58", "base64"], "base58");
  const text = value.text();
  const charactersMax = encoding === "base58" ? base58CharactersMax : base64CharactersMax;
  if (text.length > charactersMax) {
    throw invalidParams(
      value.what,
      `at most ${charactersMax} characters of ${encoding}`,
      text.length,
    );
  }
  const decode = encoding === "base58" ? decodeBase58 : decodeBase64;
  const bytes = decode(text, charactersMax);
  if (bytes) return bytes;
  throw value.refuse(`a transaction in ${encoding}`);
}

/** `message` as a transaction with empty signatures, for the calculation of its fee. */
export function messageAsTransaction(value: Value): WireTransaction {
  const message = decodeBase64(value.text(), base64CharactersMax);
  if (!message) throw value.refuse("a message in base64");
  const isV1 = message[0] === 0x81;
  const isV0 = message[0] === 0x80;
  const signers = message[isV1 || isV0 ? 1 : 0] ?? 0;
  const signatures = new Uint8Array(signers * signatureBytes);
  // No transaction has more than 127 signatures: the parser rejects the result.
  const wire = isV1
    ? Buffer.concat([message, signatures])
    : Buffer.concat([Uint8Array.of(signers & 0x7f), signatures, message]);
  try {
    return parseTransaction(wire);
  } catch (thrown) {
    if (!(thrown instanceof ShredwayError) || thrown.reason !== "transaction_invalid") throw thrown;
    throw invalidParams(value.what, "a message", thrown.message);
  }
}
