// Opens endpoints and leaders for tests and closes them afterwards.

import { afterEach, vi } from "vitest";
import { type Clock, systemClock } from "../../../src/core/clock.ts";
import { newCredentials } from "../../../src/core/quic/certificate.ts";
import { tpuProtocol } from "../../../src/core/quic/quiche.ts";
import { TpuEndpoint } from "../../../src/gateway/tpu/endpoint.ts";
import type {
  LeaderState,
  TpuAddress,
  TpuEvent,
  TpuSettings,
} from "../../../src/gateway/tpu/types.ts";
import {
  QuicServer,
  type QuicServerOptions,
  quicheOfTests,
} from "../../support/quic/quic-server.ts";

const settings: TpuSettings = {
  applicationProtocol: tpuProtocol,
  connectionsMax: 8,
  queueMax: 1000,
  // Long, so that a busy machine does not cause handshake time-outs.
  timeoutMs: 30_000,
  bind: { ipv4: "127.0.0.1", ipv6: "::1" },
  seed: 7,
};
const longMs = 60_000;
export const closing: { close(): void }[] = [];

afterEach(() => {
  for (const one of closing.splice(0).toReversed()) one.close();
});

export class Sender {
  readonly events: TpuEvent[] = [];
  readonly endpoint: TpuEndpoint;

  static async open(
    overrides: Partial<TpuSettings> = {},
    credentials = newCredentials(),
    clock: Clock = systemClock,
  ): Promise<Sender> {
    const events: TpuEvent[] = [];
    const endpoint = await TpuEndpoint.open({
      quiche: quicheOfTests(),
      clock,
      settings: { ...settings, ...overrides },
      credentials,
      report: (event) => events.push(event),
      changed: () => undefined,
    });
    closing.push(endpoint);
    return new Sender(endpoint, events);
  }

  private constructor(endpoint: TpuEndpoint, events: TpuEvent[]) {
    this.endpoint = endpoint;
    this.events = events;
  }

  send(id: number, address: TpuAddress, bytes: Uint8Array, restMs = longMs): void {
    this.endpoint.send({ id, address, bytes, restMs });
  }

  of(kind: TpuEvent["kind"]): number[] {
    return this.events.flatMap((event) => (event.kind === kind ? [event.id] : []));
  }

  reasons(): string[] {
    return this.events.flatMap((event) => ("reason" in event ? [event.reason] : []));
  }

  leader({ port }: { readonly port: number }): LeaderState {
    const state = this.endpoint.leaders().find(({ address }) => address === `127.0.0.1:${port}`);
    if (!state) throw new Error(`expected a leader at port ${port}, got none`);
    return state;
  }
}

export async function server(options: QuicServerOptions = {}): Promise<QuicServer> {
  const opened = await QuicServer.open(options);
  closing.push(opened);
  return opened;
}

export const until = (check: () => void) => vi.waitFor(check, { timeout: 60_000, interval: 5 });
