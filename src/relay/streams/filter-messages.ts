// Filters in requests of the gRPC dialects: maps of names and accounts in base58. Requests are untrusted.

import { messageOf } from "../../core/errors.ts";
import { MessageReader } from "../../core/grpc/protobuf.ts";
import { GrpcError } from "../../core/grpc/status.ts";
import { parsePubkey, pubkeyBytes } from "../../core/primitives.ts";
import { decodeBase58 } from "../data-plane/base58.ts";
import type { NamedFilter } from "./named-filter.ts";

/** All accounts of a subscription, and some other fields: of a request, and of all entries of one map together. */
export const fieldsMax = 60_000;
/** All streams together have at most this many filters. */
const entriesMax = 4096;
const nameLengthMax = 128;
/** Names of the service itself, such as the report of a gap. */
const reservedNames = "shredway.";
const accountBytes = 32;
/** The longest base58 text of an account. */
const accountTextMax = 44;
const signatureBytes = 64;
/** The longest base58 text of a signature. */
const signatureTextMax = 88;

/** Entries of a map; of equal names the last one counts. */
export function entriesOf(
  reader: MessageReader,
  field: number,
  what: string,
): [string, MessageReader][] {
  const entries = new Map<string, MessageReader>();
  const encoded = reader.byteStrings(field);
  if (encoded.length > entriesMax) {
    throw new GrpcError(
      "INVALID_ARGUMENT",
      `${what}: expected at most ${entriesMax} filters, got ${encoded.length}`,
    );
  }
  let fields = 0;
  const read = (bytes: Uint8Array): MessageReader => {
    const message = new MessageReader(bytes, fieldsMax);
    fields += message.fieldCount;
    if (fields <= fieldsMax) return message;
    const detail = `${what}: expected at most ${fieldsMax} fields in all filters, got more`;
    throw new GrpcError("INVALID_ARGUMENT", detail);
  };
  for (const bytes of encoded) {
    const entry = read(bytes);
    const name = entry.string(1);
    if (name.length > nameLengthMax) {
      throw new GrpcError(
        "INVALID_ARGUMENT",
        `${what}: expected names of at most ${nameLengthMax} characters, got ${name.length}`,
      );
    }
    if (name.startsWith(reservedNames)) {
      throw new GrpcError(
        "INVALID_ARGUMENT",
        `${what}: expected names that do not begin with "${reservedNames}", got ${JSON.stringify(name)}`,
      );
    }
    const [value] = entry.byteStrings(2).slice(-1);
    entries.set(name, read(value ?? new Uint8Array()));
  }
  return [...entries];
}

export function votesOf(vote: boolean | undefined): NamedFilter["votes"] {
  return vote === undefined ? "any" : vote ? "only" : "none";
}

/** `key`: the place of the accounts in the request. */
export function accountsOf(reader: MessageReader, field: number, key: string): Uint8Array[] {
  return reader.strings(field).map((text) => {
    const bytes = text.length <= accountTextMax ? decodeBase58(text) : null;
    if (bytes?.length === accountBytes) return bytes;
    try {
      return pubkeyBytes(parsePubkey(text));
    } catch (error) {
      throw new GrpcError("INVALID_ARGUMENT", `${key}: ${messageOf(error)}`);
    }
  });
}

/** null: the request has no signature. */
export function signatureOf(reader: MessageReader, field: number, key: string): Uint8Array | null {
  const text = reader.string(field);
  if (text === "") return null;
  const bytes = text.length <= signatureTextMax ? decodeBase58(text) : null;
  if (bytes?.length === signatureBytes) return bytes;
  throw new GrpcError(
    "INVALID_ARGUMENT",
    `${key}: expected a signature in base58 (64 bytes), got ${text.length} characters`,
  );
}
