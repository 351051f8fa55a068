// A caller whose request is on the wire while the event loop is blocked, so that the fast path alone can
// see it.

import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "vitest";
import { openGateway } from "../../../src/app/compose-gateway.ts";
import type { GatewayService } from "../../../src/app/gateway-service.ts";
import { encodeBase58 } from "../../../src/core/base58.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { type Config, completeConfig } from "../../../src/core/configuration/configuration.ts";
import { createLogger } from "../../../src/core/log.ts";
import { closing } from "../../support/closing.ts";
import { createdKey } from "../../support/gateway/created-key.ts";
import { tipWallet } from "../../support/gateway/gateway.ts";
import { Partner } from "../../support/gateway/partner.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { base64, tipping } from "../../support/transactions/tipping.ts";

const deadlineMs = 20_000;

export interface Response {
  readonly status: number;
  readonly body: { readonly result?: unknown; readonly error?: { readonly message: string } };
}

export class FastCaller {
  readonly socket: Socket;
  #received = "";

  static async open(address: string): Promise<FastCaller> {
    const [, port] = address.split(":");
    const socket = connect({ host: "127.0.0.1", port: Number(port) }).setNoDelay(true);
    await once(socket, "connect");
    const caller = new FastCaller(socket);
    closing({ close: () => void socket.destroy() });
    return caller;
  }

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on("error", () => undefined);
    socket.setEncoding("latin1").on("data", (piece: string) => {
      this.#received += piece;
    });
  }

  /** Passes the bytes to the kernel before it returns. */
  write(text: string): void {
    if (!this.socket.write(text, "latin1"))
      throw new Error("the kernel did not accept the request");
  }

  async response(): Promise<Response> {
    const end = performance.now() + deadlineMs;
    for (;;) {
      const headEnd = this.#received.indexOf("\r\n\r\n");
      const length = Number(/content-length: (\d+)/i.exec(this.#received)?.[1] ?? Number.NaN);
      if (headEnd >= 0 && this.#received.length >= headEnd + 4 + length) {
        const status = Number(this.#received.slice(9, 12));
        const text = this.#received.slice(headEnd + 4, headEnd + 4 + length);
        this.#received = this.#received.slice(headEnd + 4 + length);
        return { status, body: JSON.parse(text) };
      }
      if (performance.now() > end) throw new Error(`no response in ${deadlineMs} ms`);
      await sleep(1);
    }
  }

  async call(text: string): Promise<Response> {
    this.write(text);
    return this.response();
  }
}

export interface Opened {
  readonly config: Config;
  readonly gateway: GatewayService;
  readonly partner: Partner;
  readonly key: string;
  readonly address: string;
}

/** A gateway with one partner, and an API key. */
export async function openWithPartner(more: object = {}): Promise<Opened> {
  const partner = closing(await Partner.open());
  const route = {
    name: "partner",
    kind: "swqos",
    url: `${partner.url}/send`,
    connections: 4,
  } as const;
  const config = completeConfig({
    relay: { shredVersion: 1, authentication: "off" },
    http: { listen: "127.0.0.1:0", webSocketListen: [] },
    data: { directory: temporaryFolder() },
    tips: { addresses: [tipWallet.publicKey.toBase58()] },
    gateway: { warmUpSubmissions: 0, resendMs: 600_000 }, // nothing is sent again on a busy machine
    routes: [route],
    ...more,
  });
  const log = createLogger({ level: "silent" });
  const gateway = closing(await openGateway({ config, log, clock: systemClock }));
  const key = await createdKey(gateway);
  await gateway.start();
  return { config, gateway, partner, key, address: gateway.addresses[0] ?? "" };
}

/** The configuration with other sections. */
export function configWith({ config }: Opened, more: Partial<Config>): Config {
  return { ...config, ...more };
}

const plain = '{"encoding":"base64","skipPreflight":true,"maxRetries":0}';

export function bodyOf(wire: Uint8Array, options = plain, id: number | string = 1): string {
  const params = `["${base64(wire)}",${options}]`;
  return `{"jsonrpc":"2.0","id":${JSON.stringify(id)},"method":"sendTransaction","params":${params}}`;
}

export function requestOf(key: string, body: string, more = ""): string {
  const head = `POST /relay HTTP/1.1\r\nHost: a\r\napi-key: ${key}\r\n${more}`;
  return `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
}

export function transfer(amount: number, tip = 10_000n): Uint8Array {
  return tipping({ amount: BigInt(amount), tip });
}

/** Requests with a result in the snapshot of the fast path. */
export function counted({ gateway }: Pick<Opened, "gateway">): number {
  const counts = gateway.snapshot().fastPath;
  return counts ? counts.taken + counts.different + counts.rejected : 0;
}

/**
 * Writes a request when a connection to the partner is idle, and stops the event loop until the fast path has
 * looked at it. Returns whether it was sent.
 */
export async function writeAlone(
  opened: Pick<Opened, "gateway">,
  caller: FastCaller,
  text: string,
): Promise<boolean> {
  await lent(opened);
  const [before, takenBefore] = [counted(opened), taken(opened)];
  caller.write(text);
  const end = performance.now() + deadlineMs;
  while (counted(opened) === before) {
    if (performance.now() > end) throw new Error("the fast path did not look at the request");
  }
  return taken(opened) > takenBefore;
}

export function signatureOf(wire: Uint8Array): string {
  return encodeBase58(wire.subarray(1, 65));
}

/** The kinds of events in the timeline of a transaction of the first account, whose times ascend. */
export async function kindsOf({ gateway }: Opened, wire: Uint8Array): Promise<readonly string[]> {
  const [key] = await gateway.keys.keys();
  const [status] = await gateway.submissions.statuses(key?.accountId ?? "", [signatureOf(wire)]);
  const events = status?.events ?? [];
  const times = events.map(({ atNs }) => atNs);
  expect(times).toEqual(times.toSorted((a, b) => Number(a - b)));
  return events.map(({ kind }) => kind);
}

export function taken({ gateway }: Pick<Opened, "gateway">): number {
  return gateway.snapshot().fastPath?.taken ?? 0;
}

/** Waits until the fast path may use a connection to the partner. */
export async function lent({ gateway }: Pick<Opened, "gateway">): Promise<void> {
  const end = performance.now() + deadlineMs;
  const isLent = (): boolean => {
    const { routes, fastPath } = gateway.snapshot();
    return (fastPath?.loans ?? 0) > 0 && routes.every(({ inFlight }) => inFlight === 0);
  };
  while (!isLent()) {
    if (performance.now() > end) throw new Error("no connection was lent");
    await sleep(1);
  }
}
