// Filters in requests of the gRPC dialects: maps of names and accounts in base58. Requests are untrusted.

import { messageOf } from "../../core/errors.ts";
import { MessageReader } from "../../core/grpc/protobuf.ts";
import { GrpcError } from "../../core/grpc/status.ts";
import { parsePubkey, pubkeyBytes } from "../../core/primitives.ts";
import { decodeBase58 } from "../data-plane/base58.ts";
import type { NamedFilter } from "./named-filter.ts";

/** All accounts of a subscription, and some other fields. */
export const fieldsMax = 60_000;
const nameLengthMax = 128;
/** Names of the service itself, such as the report of a gap. */
const reservedNames = "shredway.";
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
  for (const bytes of reader.byteStrings(field)) {
    const entry = new MessageReader(bytes, fieldsMax);
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
    entries.set(name, new MessageReader(value ?? new Uint8Array(), fieldsMax));
  }
  return [...entries];
}

export function votesOf(vote: boolean | undefined): NamedFilter["votes"] {
  return vote === undefined ? "any" : vote ? "only" : "none";
}

/** `key`: the place of the accounts in the request. */
export function accountsOf(reader: MessageReader, field: number, key: string): Uint8Array[] {
  return reader.strings(field).map((text) => {
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
