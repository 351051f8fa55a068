// Addresses of destinations, from a URL of the operator.
//
// Called regularly by src/relay/destination-discovery.ts, which also checks whether the relay may send
// to them.

import { quote } from "../../core/errors.ts";
import { fetchList } from "./fetched-list.ts";

const answerBytesMax = 256 * 1024;
const addressesMax = 2048;
const defaultTimeoutMs = 10_000;

/** Throws an Error with the expected and the received value. */
function parseAddresses(text: string): readonly string[] {
  const answer: unknown = JSON.parse(text);
  if (!Array.isArray(answer)) {
    throw new Error(`expected a JSON array of addresses, got ${quote(answer)}`);
  }
  if (answer.length > addressesMax) {
    throw new Error(`expected at most ${addressesMax} addresses, got ${answer.length}`);
  }
  const isText = (one: unknown): one is string => typeof one === "string";
  const all: readonly unknown[] = answer;
  const wrong = all.findIndex((one) => !isText(one));
  if (wrong >= 0) {
    throw new Error(`expected addresses as text only, got ${quote(all[wrong])} at ${wrong}`);
  }
  return all.filter(isText);
}

/** The texts at `url`. Rejects with ShredwayError "rpc_failed". */
export function fetchDestinations(
  url: string,
  timeoutMs = defaultTimeoutMs,
): Promise<readonly string[]> {
  return fetchList(url, {
    what: "destinations",
    bytesMax: answerBytesMax,
    parse: parseAddresses,
    timeoutMs,
  });
}
