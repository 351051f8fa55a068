// Lists from a URL that the operator configured: identities, addresses.
//
// The answer is untrusted: it has a size limit, and the caller's parser checks it. The URL may contain a
// key, so errors name only the host.

import { readBounded } from "../../core/bounded-body.ts";
import { basicAuthorization, maskerOf } from "../../core/configuration/url-secrets.ts";
import { messageOf, ShredwayError } from "../../core/errors.ts";
import { withTimeout } from "../../core/request-timeout.ts";

interface ListRequest<T> {
  /** The name of the list in errors, for example "members". */
  readonly what: string;
  readonly bytesMax: number;
  /** Throws an Error with the expected and the received value. */
  readonly parse: (text: string) => T;
  readonly timeoutMs: number;
}

/**
 * The list at `url` (http or https). Rejects with ShredwayError "rpc_failed": no answer in time, a status
 * other than 200, or an invalid list.
 */
export async function fetchList<T>(url: string, request: ListRequest<T>): Promise<T> {
  const { what, bytesMax, parse, timeoutMs } = request;
  const address = new URL(url);
  const mask = maskerOf(address);
  const authorization = basicAuthorization(address);
  address.username = address.password = ""; // fetch rejects a URL that contains them
  try {
    return await withTimeout(timeoutMs, async (signal) => {
      const response = await fetch(address, {
        headers: {
          accept: "application/json",
          ...(authorization !== null && { authorization }),
        },
        redirect: "error",
        signal,
      });
      if (response.status !== 200) {
        await response.body?.cancel();
        throw new Error(`expected HTTP status 200, got ${response.status}`);
      }
      return parse(await readBounded(response, { bytesMax, signal }));
    });
  } catch (thrown) {
    // Without the cause, whose text and stack may contain the whole URL.
    const inner = thrown instanceof Error && thrown.cause !== undefined ? thrown.cause : thrown;
    const text = mask(messageOf(inner));
    throw new ShredwayError("rpc_failed", `${what} at ${address.host}: ${text}`);
  }
}
