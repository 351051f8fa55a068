// Transaction pushes of a complete service: customers with verified destinations, and their UDP receivers.

import { createSocket, type Socket } from "node:dgram";
import { once } from "node:events";
import { ShredwayClient } from "../../../src/client/client.ts";
import { type PushDatagram, readPushDatagram } from "../../../src/client/push-datagram.ts";
import type { Destination } from "../../../src/client/responses.ts";
import type { Scope } from "../../../src/gateway/accounts/types.ts";
import { PacedSender } from "../../../src/relay/data-plane/paced-sender.ts";
import { PortalHarness, region, tier1Lamports } from "../../platform/portal/harness.ts";
import { closing } from "../closing.ts";
import { until } from "../network/udp-receiver.ts";
import { batchOf, type MadeTransaction, slotOf } from "./stream-relay.ts";

/** A customer's receiver: answers challenges, and reads the datagrams of pushes. */
export class PushReceiver {
  readonly datagrams: PushDatagram[] = [];
  shreds = 0;
  /** Ports of the senders of these datagrams. */
  readonly ports = new Set<number>();
  readonly #socket: Socket;
  answersChallenges = true;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("message", (packet, from) => {
      const datagram = readPushDatagram(Uint8Array.from(packet));
      if (datagram) {
        this.datagrams.push(datagram);
        this.ports.add(from.port);
      } else if (packet.length === 52 && this.answersChallenges) {
        socket.send(packet, from.port, from.address);
      } else if (packet.length > 1200) {
        this.shreds++;
      }
    });
  }

  static async open(host = "127.0.0.1"): Promise<PushReceiver> {
    const type = host.includes(":") ? "udp6" : "udp4";
    const socket = createSocket({ type, recvBufferSize: 16 << 20 });
    socket.bind(0, host);
    await once(socket, "listening");
    return closing(new PushReceiver(socket));
  }

  get address(): string {
    const { address, port } = this.#socket.address();
    return address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
  }

  of<Kind extends PushDatagram["kind"]>(kind: Kind): Extract<PushDatagram, { kind: Kind }>[] {
    return this.datagrams.filter(
      (one): one is Extract<PushDatagram, { kind: Kind }> => one.kind === kind,
    );
  }

  /** The transactions in wire format, in the order of their arrival. */
  transactions(): Buffer[] {
    return this.of("transaction").map(({ transaction }) => Buffer.from(transaction));
  }

  close(): void {
    this.#socket.close();
  }
}

export interface Customer {
  readonly client: ShredwayClient;
  readonly keyId: string;
  /** The key's text. */
  readonly text: string;
  readonly url: string;
}

/** A complete service with decoded streams; sources 127.0.0.2 (tier-1) and 127.0.0.3 (tier-2). */
export class PushRun {
  readonly harness: PortalHarness;
  readonly #senders: Readonly<Record<"tier-1" | "tier-2", PacedSender>>;
  #nextSlot = 110n;

  private constructor(harness: PortalHarness) {
    this.harness = harness;
    const to = harness.service.relay.relay.addresses[0] ?? "";
    const senderFrom = (from: string) => closing(PacedSender.open({ to, from: `${from}:0` }));
    this.#senders = { "tier-1": senderFrom("127.0.0.2"), "tier-2": senderFrom("127.0.0.3") };
  }

  /** `streams`: further keys of the section. */
  static async open(
    streams: object = {},
    sections: Parameters<typeof PortalHarness.open>[0] = {},
  ): Promise<PushRun> {
    const sources = [
      { name: "a", address: "127.0.0.2", tier: "tier-1" },
      { name: "b", address: "127.0.0.3", tier: "tier-2" },
    ];
    return new PushRun(
      await PortalHarness.open({
        ...sections,
        relay: { deshred: true, sources },
        streams: { listen: "127.0.0.1:0", ...streams },
      }),
    );
  }

  /** An account of tier-1 with a new key. */
  async customer(
    name: string,
    scopes: readonly Scope[] = ["submit", "read", "shreds", "stream"],
  ): Promise<Customer> {
    const key = await this.harness.key(name, scopes, { requestsPerSecond: 1000, burst: 10_000 });
    const url = `${this.harness.origin}/relay?api-key=${key.text}`;
    if (scopes.includes("submit")) await this.harness.registerTip(key, tier1Lamports);
    return { client: new ShredwayClient({ url }), keyId: key.key.id, text: key.text, url };
  }

  /** A verified destination. */
  async destination(
    { client }: Customer,
    { address }: Pick<PushReceiver, "address">,
  ): Promise<Destination> {
    const { id } = await client.addDestination({ region, address });
    const endMs = performance.now() + 60_000;
    for (;;) {
      const found = (await client.getDestinations()).find((one) => one.id === id);
      if (found?.state === "active") return found;
      if (performance.now() > endMs) throw new Error(`expected an active one, got ${found?.state}`);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  /** Waits until the relay uses the filters of this number of pushes. */
  async inForce(filters: number): Promise<void> {
    const status = () => this.harness.service.streams?.status().filters;
    const isInForce = () => status()?.filters === filters && status()?.isCurrent === true;
    await until(isInForce, `${filters} filters in force`);
  }

  /** Sends a slot with these batches, and returns its number. */
  sendBatches(batches: readonly Uint8Array[], from: "tier-1" | "tier-2" = "tier-1"): bigint {
    const slot = this.#nextSlot++;
    const packets = slotOf(slot, batches);
    this.#senders[from].enqueue(packets, new BigUint64Array(packets.length));
    return slot;
  }

  /** A slot of one batch. */
  send(transactions: readonly MadeTransaction[], from: "tier-1" | "tier-2" = "tier-1"): bigint {
    return this.sendBatches([batchOf(transactions)], from);
  }

  /** Advances the clock of the service, and runs its timers. */
  move(ms: number): void {
    this.harness.clock.move(ms);
  }
}
