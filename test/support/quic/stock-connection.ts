// A stock web3.js connection that can be closed, which the library does not support.
//
// In addition to a notification, the library requests a signature's status and ignores the
// response. If the server closed meanwhile, the request would fail, and with it the whole test run.

import { Connection } from "@solana/web3.js";
import { isObject } from "../../../src/core/values.ts";
import { closing } from "../closing.ts";

/** Closed before earlier resources: call this after the server is open. */
export function stockConnection(url: string, commitment: "processed" | "confirmed"): Connection {
  const underWay = new Set<Promise<unknown>>();
  const whole = async (...request: Parameters<typeof fetch>): Promise<Response> => {
    const response = await fetch(...request);
    const { status, statusText, headers } = response;
    return new Response(await response.text(), { status, statusText, headers });
  };
  const connection = new Connection(url, {
    commitment,
    fetch: (...request) => {
      const answer = whole(...request);
      underWay.add(answer);
      const forget = (): void => void underWay.delete(answer);
      answer.then(forget, forget);
      return answer;
    },
  });
  const close = async (): Promise<void> => {
    while (underWay.size > 0) await Promise.allSettled(underWay);
    // It would try to reconnect forever.
    const socket: unknown = Reflect.get(connection, "_rpcWebSocket");
    if (!isObject(socket)) return;
    if (typeof socket["setAutoReconnect"] === "function") socket["setAutoReconnect"](false);
    if (typeof socket["close"] === "function") socket["close"]();
  };
  closing({ close });
  return connection;
}
