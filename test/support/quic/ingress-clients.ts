// Clients of a test's QUIC ingress: connected by a key, and the frames of bundles.

import { newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import { until } from "../network/udp-receiver.ts";
import type { IngressRun } from "./ingress-run.ts";
import { QuicClient, type QuicClientOptions } from "./quic-client.ts";
import { type Response, readResponse } from "./response-frames.ts";

interface ClientChoices extends QuicClientOptions {
  /** Text of the API key. Default: "good". */
  readonly key?: string;
  /** Number of the listener. Default: 0. */
  readonly listener?: number;
  readonly isProtected?: boolean;
}

/** Begins a handshake; the ingress may still refuse the client. */
export function begin(run: IngressRun, choices: ClientChoices = {}): Promise<QuicClient> {
  const { key = "good", listener = 0, isProtected = false, ...options } = choices;
  return QuicClient.open(run.address(listener), {
    credentials: newEcdsaCredentials(key, { isProtected }),
    protocol: "shredway-tpu",
    idleTimeoutMs: 60_000, // the machine may be busy
    ...options,
  });
}

/** A client that the ingress has accepted. */
export async function connect(run: IngressRun, choices: ClientChoices = {}): Promise<QuicClient> {
  const before = sessionsOf(run);
  const client = await begin(run, choices);
  await until(() => sessionsOf(run) > before, "an accepted connection");
  return client;
}

export function sessionsOf({ ingress }: IngressRun): number {
  return [...ingress.snapshot().connections.values()].reduce((sum, count) => sum + count, 0);
}

/** The response to one bidirectional stream. */
export async function ask(client: QuicClient, bytes: Uint8Array): Promise<Response> {
  return readResponse(await client.request(bytes));
}

/** Transactions as frames, as on /relayb. */
export function framed(...wires: readonly Uint8Array[]): Buffer {
  const parts = wires.flatMap((wire) => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(wire.length);
    return [length, wire];
  });
  return Buffer.concat(parts);
}
