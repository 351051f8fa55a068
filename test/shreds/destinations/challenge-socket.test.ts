// Real UDP sockets on loopback: sent and received datagrams, and a complete proof.

import { randomBytes } from "node:crypto";
import { createSocket, type RemoteInfo, type Socket } from "node:dgram";
import { once } from "node:events";
import { afterEach, describe, expect, it } from "vitest";
import {
  formatEndpoint,
  parseAddress,
  parseEndpoint,
} from "../../../src/core/addresses/addresses.ts";
import { listenerReachedBy, readOwnAddresses } from "../../../src/core/addresses/own-addresses.ts";
import { systemClock } from "../../../src/core/clock.ts";
import {
  ChallengeSocket,
  type ChallengeSocketOptions,
  inboundPerSecond,
} from "../../../src/shreds/destinations/challenge-socket.ts";
import { AccountDestinations } from "../../../src/shreds/destinations/destinations.ts";
import { challengeOf } from "../../../src/shreds/destinations/ownership-proof.ts";
import { Files, silent, until } from "../../platform/store/files.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { settings } from "./harness.ts";

const files = new Files();
const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).toReversed()) await each.close();
  await files.clean();
});

const hasIpv6 = readOwnAddresses().includes("::1");
const token = Buffer.alloc(16, 7);
const challenge = challengeOf(token);

interface ReceivedMessage {
  readonly from: string;
  readonly bytes: Buffer;
}

class Opened {
  readonly notifications: ReceivedMessage[] = [];
  socket: ChallengeSocket | undefined;

  static async at(changes: Partial<ChallengeSocketOptions> = {}): Promise<Opened> {
    const opened = new Opened();
    opened.socket = await ChallengeSocket.open({
      listen: "127.0.0.1:0",
      listenIpv6: hasIpv6 ? "[::1]:0" : "[::]:0",
      clock: systemClock,
      log: silent,
      isAwaited: () => true,
      onMessage: (from, datagram) =>
        opened.notifications.push({ from, bytes: Buffer.from(datagram) }),
      ...changes,
    });
    open.push(opened.socket);
    return opened;
  }
}

/** A customer's socket; `echo`: its answer. */
class Customer {
  readonly received: { bytes: Buffer; from: RemoteInfo }[] = [];
  readonly #socket: Socket;

  private constructor(socket: Socket) {
    this.#socket = socket;
  }

  static async at(host = "127.0.0.1", port = 0): Promise<Customer> {
    const socket = createSocket(host.includes(":") ? "udp6" : "udp4");
    const customer = new Customer(socket);
    socket.on("message", (bytes, from) => customer.received.push({ bytes, from }));
    socket.bind(port, host);
    await once(socket, "listening");
    open.push({ close: () => new Promise<void>((resolve) => socket.close(() => resolve())) });
    return customer;
  }

  get address(): string {
    const { address, port } = this.#socket.address();
    return formatEndpoint({ bytes: parseAddress(address), port });
  }

  async send(bytes: Uint8Array, to: string): Promise<void> {
    const { bytes: host, port } = parseEndpoint(to);
    const text = formatEndpoint({ bytes: host, port: 1 }).replace(/:1$/, "").replace(/[[\]]/g, "");
    await new Promise<void>((resolve, reject) => {
      this.#socket.send(bytes, port, text, (error) => (error ? reject(error) : resolve()));
    });
  }
}

describe("ChallengeSocket", () => {
  it("sends, and reports each answer with its sender", async () => {
    const { socket, notifications } = await Opened.at();
    const customer = await Customer.at();
    socket?.send(customer.address, challenge);
    await until(() => customer.received.length === 1);
    const [first] = customer.received;
    expect(first?.bytes).toEqual(Buffer.from(challenge));
    const own = socket?.addresses[0] ?? "";
    expect(`127.0.0.1:${first?.from.port}`).toBe(own);
    await customer.send(challenge, own);
    await customer.send(challenge.subarray(0, 24), own);
    await until(() => notifications.length === 2);
    expect(notifications).toEqual([
      { from: customer.address, bytes: Buffer.from(challenge) },
      { from: customer.address, bytes: Buffer.from(challenge.subarray(0, 24)) },
    ]);
  });

  it.runIf(hasIpv6)("does the same over IPv6", async () => {
    const { socket, notifications } = await Opened.at();
    const customer = await Customer.at("::1");
    expect(customer.address).toMatch(/^\[::1\]:/);
    socket?.send(customer.address, challenge);
    await until(() => customer.received.length === 1);
    await customer.send(challenge, socket?.addresses[1] ?? "");
    await until(() => notifications.length === 1);
    expect(notifications[0]?.from).toBe(customer.address);
  });

  it("drops datagrams that cannot be answers", async () => {
    const { socket, notifications } = await Opened.at();
    const customer = await Customer.at();
    const own = socket?.addresses[0] ?? "";
    const long = Buffer.concat([challenge, Buffer.alloc(20_000)]);
    const hostile = [
      Buffer.alloc(0),
      Buffer.from("SWPROOF1"),
      challenge.subarray(0, 23),
      long,
      long.subarray(0, 64),
      Buffer.from(challenge).fill("X", 0, 1),
      randomBytes(24),
    ];
    for (const bytes of hostile) await customer.send(bytes, own);
    await customer.send(challenge, own);
    await until(() => notifications.length === 1);
    expect(socket?.counts).toEqual({ dropped: hostile.length, failed: 0 });
    expect(notifications[0]?.bytes).toEqual(Buffer.from(challenge));
  });

  it("processes a bounded number per second", async () => {
    const clock = new ManualClock();
    const { socket, notifications } = await Opened.at({ clock });
    const customer = await Customer.at();
    const own = socket?.addresses[0] ?? "";
    const send = async (count: number): Promise<void> => {
      for (let i = 0; i < count; i++) {
        await customer.send(challenge.subarray(0, 24), own);
        if (i % 50 === 49) {
          const seen = i + 1 + before;
          await until(() => notifications.length + (socket?.counts.dropped ?? 0) >= seen);
        }
      }
    };
    let before = 0;
    await send(inboundPerSecond + 100);
    expect(notifications.length).toBe(inboundPerSecond);
    expect(socket?.counts.dropped).toBe(100);
    before = inboundPerSecond + 100;
    await clock.advance(1000);
    await send(50);
    expect(notifications.length).toBe(inboundPerSecond + 50);
  });

  it("does not count datagrams of strangers", async () => {
    const [stranger, customer] = [await Customer.at(), await Customer.at()];
    const { socket, notifications } = await Opened.at({
      clock: new ManualClock(),
      isAwaited: (from) => from === customer.address,
    });
    const own = socket?.addresses[0] ?? "";
    for (let i = 0; i < inboundPerSecond + 100; i++) {
      await stranger.send(challenge.subarray(0, 24), own);
      if (i % 50 === 49) await until(() => (socket?.counts.dropped ?? 0) >= i + 1);
    }
    await customer.send(challenge.subarray(0, 24), own);
    await until(() => notifications.length === 1);
    expect(notifications[0]?.from).toBe(customer.address);
  });

  it("counts send failures and never throws", async () => {
    const { socket } = await Opened.at();
    const hopeless = ["garbage", "127.0.0.1:0", "255.255.255.255:9001"];
    for (const address of hopeless) socket?.send(address, challenge);
    await until(() => socket?.counts.failed === hopeless.length);
    await socket?.close();
    socket?.send("127.0.0.1:9001", challenge);
    expect(socket?.counts.failed).toBe(hopeless.length + 1);
    await socket?.close();
  });

  it("continues after an address rejected a datagram", async () => {
    const { socket, notifications } = await Opened.at();
    const gone = await Customer.at();
    const { address } = gone;
    await open.pop()?.close();
    for (let i = 0; i < 5; i++) socket?.send(address, challenge);
    const customer = await Customer.at();
    await customer.send(challenge, socket?.addresses[0] ?? "");
    await until(() => notifications.length === 1);
  });

  it("rejects an address in use, or of the other family", async () => {
    const { socket } = await Opened.at();
    const occupied = socket?.addresses[0] ?? "";
    await expect(Opened.at({ listen: occupied })).rejects.toMatchObject({
      reason: "system",
      message: expect.stringContaining(`delivery.proof.listen: cannot listen on`),
    });
    await expect(Opened.at({ listen: "[::1]:0" })).rejects.toMatchObject({
      reason: "config_invalid",
    });
    await expect(Opened.at({ listenIpv6: "127.0.0.1:0" })).rejects.toMatchObject({
      reason: "config_invalid",
    });
    await expect(Opened.at({ listen: "192.0.2.1:0" })).rejects.toMatchObject({ reason: "system" });
  });
});

/** The store on disk, the rules and the socket, combined as in the service. */
async function service(): Promise<{ destinations: AccountDestinations; own: string }> {
  const store = await files.store();
  const account = await store.keys.ensureAccount("one", 1n);
  const wires: { destinations?: AccountDestinations } = {};
  const socket = await ChallengeSocket.open({
    listen: "127.0.0.1:0",
    listenIpv6: "[::]:0",
    clock: systemClock,
    log: silent,
    isAwaited: (from) => wires.destinations?.isAwaited(from) ?? false,
    onMessage: (from, datagram) => wires.destinations?.answer(from, datagram),
  });
  open.push(socket);
  const listeners = socket.addresses.map((text) => parseEndpoint(text));
  const destinations = await AccountDestinations.open(
    {
      clock: systemClock,
      store: store.destinations,
      log: silent,
      random: randomBytes,
      openProbe: () => ({ check: () => "pending", close: () => {} }),
      sendChallenge: (address, datagram) => socket.send(address, datagram),
      isOwnListener: (endpoint) =>
        listenerReachedBy(endpoint, listeners, readOwnAddresses()) !== undefined,
      regionProblem: () => null,
      isServedElsewhere: () => false,
      countLeases: () => 0,
    },
    { ...settings, allowPrivate: true },
  );
  wires.destinations = destinations;
  open.push(destinations);
  accountId = account.id;
  return { destinations, own: socket.addresses[0] ?? "" };
}
let accountId = "";

describe("a proof over the network", () => {
  it("is the echo of the challenge from the address itself", async () => {
    const { destinations } = await service();
    const [customer, neighbour] = await Promise.all([Customer.at(), Customer.at()]);
    const account = { id: accountId, name: "one" };
    const { id } = await destinations.add(account, "here", customer.address);
    await until(() => customer.received.length > 0);
    const [{ bytes, from } = { bytes: Buffer.alloc(0), from: { port: 0 } }] = customer.received;
    const back = `127.0.0.1:${from.port}`;
    // Answers from another port, with another token, or with an extra byte have no effect.
    await neighbour.send(bytes, back);
    await customer.send(Buffer.from(bytes).fill(0, 8, 24), back);
    await customer.send(Buffer.concat([bytes, Buffer.alloc(1)]), back);
    const other = await destinations.add(account, "here", neighbour.address);
    await until(() => neighbour.received.length > 0);
    await customer.send(neighbour.received[0]?.bytes ?? Buffer.alloc(0), back);
    expect(destinations.active("here")).toEqual([]);
    await customer.send(bytes.subarray(0, 24), back);
    await until(() => destinations.active("here").length > 0);
    expect(destinations.active("here")).toMatchObject([{ accountId, address: customer.address }]);
    const [mine, theirs] = destinations.ofAccount(accountId);
    expect(mine).toMatchObject({ id, state: "active", provedBy: "datagram" });
    expect(theirs).toMatchObject({ id: other.id, state: "unproved" });
    expect(customer.received.length).toBe(1);
  });

  it("is the token by a call", async () => {
    const { destinations } = await service();
    const customer = await Customer.at();
    const account = { id: accountId, name: "one" };
    const { id } = await destinations.add(account, "here", customer.address);
    await until(() => customer.received.length > 0);
    const text = customer.received[0]?.bytes.subarray(8, 24).toString("hex") ?? "";
    await destinations.prove(accountId, id, text);
    expect(destinations.active("here").length).toBe(1);
  });

  it("is impossible for the challenging socket itself", async () => {
    const { destinations, own } = await service();
    const adding = destinations.add({ id: accountId, name: "one" }, "here", own);
    await expect(adding).rejects.toThrow(/it is an address of this machine/);
  });
});
