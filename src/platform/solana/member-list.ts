// Identities of the alternative partner's validators, from a URL.
//
// Called regularly by partner-members.ts. The answer must be a JSON array of identities or an object with
// identities as keys.

import { quote } from "../../core/errors.ts";
import { isPubkey } from "../../core/primitives.ts";
import { isObject } from "../../core/values.ts";
import { fetchList } from "./fetched-list.ts";

/**
 * Some lists also contain every slot of each member. Parsing blocks the event loop for about 10 ms per
 * MB.
 */
const answerBytesMax = 2 * 1024 * 1024;
/** The limit of a configuration. */
export const membersMax = 4096;
const defaultTimeoutMs = 10_000;

/** Throws an Error with the expected and the received value. */
export function parseMembers(text: string): ReadonlySet<string> {
  const answer: unknown = JSON.parse(text);
  if (!Array.isArray(answer) && !isObject(answer)) {
    throw new Error(`expected an array or an object of identities, got ${quote(answer)}`);
  }
  const names: readonly unknown[] = Array.isArray(answer) ? answer : Object.keys(answer);
  if (names.length > membersMax) {
    throw new Error(`expected at most ${membersMax} identities, got ${names.length}`);
  }
  const wrong = names.findIndex((name) => typeof name !== "string" || !isPubkey(name));
  if (wrong >= 0) {
    throw new Error(`expected identities in base58 only, got ${quote(names[wrong])} at ${wrong}`);
  }
  return new Set(names.map(String));
}

/**
 * The identities at `url` (http or https), in base58. Rejects with ShredwayError "rpc_failed": no answer
 * in time, a status other than 200, or an invalid list.
 */
export function fetchMembers(
  url: string,
  timeoutMs = defaultTimeoutMs,
): Promise<ReadonlySet<string>> {
  return fetchList(url, {
    what: "members",
    bytesMax: answerBytesMax,
    parse: parseMembers,
    timeoutMs,
  });
}
