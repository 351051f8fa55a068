// Warm-up of the process of the QUIC connections: it connects with leaders in its own memory.
//
// quic-process-main.ts runs it before the sockets are open. Node.js interprets new code and compiles it after
// some calls, so the first handshakes of a process take several times as long as later ones. No packet leaves
// the process, and nothing is counted.

import { randomBytes } from "node:crypto";
import type { Clock } from "../../core/clock.ts";
import {
  buildQuicheConfig,
  packetBytesMax,
  type Quiche,
  type QuicheConfig,
  type QuicheConnection,
  type QuicheCredentials,
} from "../../core/quic/quiche.ts";
import { packetsOf, takePacket } from "../../core/quic/quiche-calls.ts";
import { idleTimeoutMs } from "./connection.ts";
import { TpuEndpoint } from "./endpoint.ts";
import type { TpuAddress, TpuSettings } from "./types.ts";
import type { OpenTpuSockets } from "./udp-sockets.ts";

/** Connections, each with one transaction. */
export const warmUpLeaders = 48;
/** A transaction that comes meanwhile waits for the end. */
const durationNsMax = 300_000_000n;
const transactionBytes = 700;
const host = "127.0.0.1";
const local: TpuAddress = { host, port: 1 };
const firstLeaderPort = 2;
const connectionIdBytes = 8;

export interface WarmUpOptions {
  readonly quiche: Quiche;
  readonly clock: Clock;
  readonly settings: TpuSettings;
  readonly credentials: QuicheCredentials;
  readonly inNextTurn: (action: () => void) => void;
}

/** The leaders, and the packets between them and the endpoint. */
class MemoryNetwork {
  readonly #quiche: Quiche;
  readonly #config: QuicheConfig;
  readonly #leaders = new Map<number, QuicheConnection>();
  readonly #chunk = Buffer.allocUnsafe(packetBytesMax);
  #received: (packet: Uint8Array) => void = () => undefined;
  #packets: { readonly packet: Uint8Array; readonly to: TpuAddress }[] = [];
  #transactions = 0;

  constructor({ quiche, settings, credentials }: WarmUpOptions) {
    this.#quiche = quiche;
    this.#config = buildQuicheConfig(quiche, {
      credentials,
      asksCertificate: true,
      applicationProtocol: settings.applicationProtocol,
      idleTimeoutMs,
      packetBytesMax,
      connectionBytesMax: transactionBytes,
      streamBytesMax: transactionBytes,
      streamsMax: 1,
    });
  }

  /** Transactions that leaders have received completely. */
  get transactions(): number {
    return this.#transactions;
  }

  /** Sockets of the endpoint. */
  readonly open: OpenTpuSockets = (_, received) => {
    this.#received = received;
    const send = (packet: Uint8Array, to: TpuAddress): void =>
      void this.#packets.push({ packet, to });
    return {
      failed: 0,
      lastFailure: "",
      socketFor: () => ({ local, send }),
      close: () => undefined,
    };
  };

  /** Until neither side has anything to send. */
  deliver(): void {
    while (this.#packets.length > 0) {
      const packets = this.#packets;
      this.#packets = [];
      for (const { packet, to } of packets) {
        const leader = this.#leaderAt(to);
        takePacket(leader, packet, { from: local, to });
        this.#read(leader);
        for (const answer of packetsOf(leader)) this.#received(answer.packet);
      }
    }
  }

  #leaderAt(address: TpuAddress): QuicheConnection {
    const known = this.#leaders.get(address.port);
    if (known) return known;
    const id = randomBytes(connectionIdBytes);
    const leader = this.#quiche.Connection.accept(id, null, address, local, this.#config);
    this.#leaders.set(address.port, leader);
    return leader;
  }

  #read(leader: QuicheConnection): void {
    for (const streamId of leader.readable()) {
      const [, isComplete] = leader.streamRecv(streamId, this.#chunk) ?? [0, false];
      if (isComplete) this.#transactions++;
    }
  }
}

/** Returns the number of transactions that arrived. Rejects for an invalid key. */
export async function warmUp(options: WarmUpOptions): Promise<number> {
  const { quiche, clock, settings, credentials, inNextTurn } = options;
  const network = new MemoryNetwork(options);
  const endpoint = await TpuEndpoint.open({
    quiche,
    clock,
    settings: { ...settings, connectionsMax: warmUpLeaders },
    credentials,
    openSockets: network.open,
    report: () => undefined,
    changed: () => undefined,
  });
  const bytes = new Uint8Array(transactionBytes);
  const endNs = clock.monotonicNs() + durationNsMax;
  for (let id = 0; id < warmUpLeaders && clock.monotonicNs() < endNs; id++) {
    const address = { host, port: firstLeaderPort + id };
    endpoint.send({ id, address, bytes, restMs: settings.timeoutMs });
    network.deliver();
    await new Promise<void>((resolve) => inNextTurn(resolve));
  }
  endpoint.close();
  return network.transactions;
}
