// Who runs the alternative partner's software, as an address on the net lists them.
//
// Asked by tracker/partner-members.ts now and then. The answer is a stranger's bytes: bounded, and refused as
// a whole unless it is a JSON array of identities or an object with identities as keys. The URL may hold
// a key, so errors name the host only.

import { basicAuthorization, maskerOf } from "../../core/configuration/url-secrets.ts";
import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import { parsePubkey } from "../../core/primitives.ts";
import { isObject } from "../../core/values.ts";
import { readBounded } from "./bounded-body.ts";

/** Some lists have every slot of each member beside it. Parsing stops everything for about 10 ms per MB. */
const answerBytesMax = 2 * 1024 * 1024;
/** As many as a configuration may name. */
export const membersMax = 4096;
const defaultTimeoutMs = 10_000;

/** Throws an Error that says what was expected and what came. */
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

function isPubkey(text: string): boolean {
  try {
    parsePubkey(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * The identities that `url` (http or https) lists, in base58. Rejects with ShredwayError "rpc_failed":
 * no answer in time, another status than 200, or anything that is no such list.
 */
export async function fetchMembers(
  url: string,
  timeoutMs = defaultTimeoutMs,
): Promise<ReadonlySet<string>> {
  const address = new URL(url);
  const mask = maskerOf(address);
  const authorization = basicAuthorization(address);
  address.username = address.password = ""; // fetch refuses an address that holds them
  try {
    const response = await fetch(address, {
      headers: {
        accept: "application/json",
        ...(authorization !== null && { authorization }),
      },
      signal: AbortSignal.timeout(timeoutMs),
    });
    if (response.status !== 200) {
      await response.body?.cancel();
      throw new Error(`expected HTTP status 200, got ${response.status}`);
    }
    return parseMembers(await readBounded(response, answerBytesMax));
  } catch (thrown) {
    // The cause is left behind: its text and its stack may hold the whole address.
    const inner = thrown instanceof Error && thrown.cause !== undefined ? thrown.cause : thrown;
    const text = mask(messageOf(inner));
    throw new ShredwayError("rpc_failed", `members at ${address.host}: ${text}`);
  }
}
