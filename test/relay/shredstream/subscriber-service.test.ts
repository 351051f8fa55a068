// This relay as a block engine: a stock gRPC client, this relay's own subscription, and every bad input.

import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { openService } from "../../../src/app/open-service.ts";
import type { Service } from "../../../src/app/service.ts";
import { type Config, parseConfig } from "../../../src/core/configuration/configuration.ts";
import { ShredwayError } from "../../../src/core/errors.ts";
import { KeyPair } from "../../../src/core/key-pair.ts";
import { createLogger } from "../../../src/core/log.ts";
import { pubkeyOf } from "../../../src/core/primitives.ts";
import { PacedSender } from "../../../src/relay/data-plane/paced-sender.ts";
import { SubscriberService } from "../../../src/relay/shredstream/subscriber-service.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { selfSignedCertificate, selfSignedKey } from "../../support/quic/self-signed.ts";
import { oneLeaderTraffic } from "../../support/shreds/shred-traffic.ts";
import { writeKeyFile } from "../../support/shredstream/key-file.ts";
import { stockClient } from "../../support/shredstream/stock-client.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const alice = new KeyPair(new Uint8Array(32).fill(3));
const bob = new KeyPair(new Uint8Array(32).fill(4));
const stranger = new KeyPair(new Uint8Array(32).fill(5));
const traffic = oneLeaderTraffic();

async function openRelay(sections: string, sources: string) {
  const folder = temporaryFolder();
  const [leader = new Uint8Array(32)] = traffic.leaderKeys;
  const slots = Array.from({ length: 100 }, (_, i) => i);
  const leaders = { firstSlot: 50, leaders: { [pubkeyOf(leader)]: slots } };
  writeFileSync(join(folder, "leaders.json"), JSON.stringify(leaders));
  writeFileSync(join(folder, "cert.pem"), selfSignedCertificate);
  writeFileSync(join(folder, "key.pem"), selfSignedKey);
  writeKeyFile(join(folder, "alice.json"), 3);
  const textOf = (more: string) => `relay:
  listen: "127.0.0.1:0"
  shredVersion: 99
  leaders: { file: leaders.json }
  allowPrivateDestinations: true
  receive: { bufferBytes: 1000000 }
  sources: [ ${sources} ]
data: { directory: ${folder} }
${more}`;
  const next = { text: textOf(sections) };
  const readConfig = () => parseConfig(next.text, join(folder, "a.yaml"));
  const clock = ManualClock.running();
  const lines: string[] = [];
  const log = createLogger({ stream: { write: (line) => void lines.push(line) } });
  const config = readConfig();
  const service = closing(await openService({ config, readConfig, log, clock, prefault: false }));
  await service.start();
  const destinations = () =>
    service.relay.snapshot().destinations.map(({ address, tier }) => [address, tier]);
  return { service, clock, lines, next, textOf, destinations, folder };
}

const engineSection = (more = "", subscribers = "") => `shredstream:
  listen: "127.0.0.1:0"
  ttlSeconds: 30
  ${more}
  subscribers:
    - { name: alice, publicKey: ${alice.address}, tier: tier-2 }
${subscribers}`;
const local = "{ name: local, address: 127.0.0.1, tier: tier-1 }";
const bobLine = `    - { name: bob, publicKey: ${bob.address}, tier: tier-1, destinations: 1 }\n`;

const clientOf = ({ subscribers }: Pick<Service, "subscribers">, tls = false) =>
  stockClient(subscribers?.address ?? "", tls);

describe("this relay as a block engine", () => {
  it("serves a stock client: tokens, heartbeats, a lease that ends, and a renewal", async () => {
    const { service, clock, destinations } = await openRelay(engineSection(), local);
    const client = clientOf(service);
    const { access, refresh } = await client.login(alice);
    expect(await client.heartbeat(access, "127.0.0.1", 9001, ["ny", "slc", "tokyo"])).toEqual({
      ttl_ms: 30_000,
    });
    expect(destinations()).toEqual([["127.0.0.1:9001", "tier-2"]]);
    clock.move(20_000);
    await client.heartbeat(access, "127.0.0.1", 9001);
    clock.move(20_000);
    expect(destinations()).toHaveLength(1);
    await until(() => {
      clock.move(1000);
      return destinations().length === 0;
    }, "the end of the lease");
    clock.move(30 * 60_000);
    await expect(client.heartbeat(access, "127.0.0.1", 9001)).rejects.toThrow(/UNAUTHENTICATED/);
    const renewed = client.tokenText((await client.refresh(refresh))["access_token"]);
    await client.heartbeat(renewed, "127.0.0.1", 9001);
    expect(destinations()).toHaveLength(1);
  });

  it("serves TLS", async () => {
    const tls = "tls: { certificate: cert.pem, key: key.pem }";
    const { service, destinations, clock, lines, folder } = await openRelay(
      engineSection(tls),
      local,
    );
    const client = clientOf(service, true);
    await client.heartbeat((await client.login(alice)).access, "127.0.0.1", 9001);
    expect(destinations()).toHaveLength(1);
    // The files are followed: unusable ones are reported, and the last certificate stays in use.
    writeFileSync(join(folder, "cert.pem"), "no certificate");
    await until(() => {
      clock.move(2001);
      return lines.join().includes("shredstream: the new TLS certificate cannot be used");
    }, "the report");
    expect(service.operations?.checks()).toContainEqual(
      expect.objectContaining({ name: "subscribers", ok: false, critical: false }),
    );
    writeFileSync(join(folder, "cert.pem"), selfSignedCertificate);
    await until(() => {
      clock.move(2001);
      return lines.join().includes("shredstream: a new TLS certificate is in force");
    }, "the new certificate");
    await clientOf(service, true).login(alice);
  });

  it("sends shreds to another relay that subscribes, until the subscriber is removed", async () => {
    const engine = await openRelay(engineSection(), local);
    const url = `http://${engine.service.subscribers?.address}`;
    const source = `{ name: jito, kind: shredstream, tier: tier-1, shredstream: { url: "${url}", keyFile: alice.json, regions: [ny] } }`;
    const customer = await openRelay("", source);
    const stateOf = () => customer.service.relay.shredstream.statuses()[0]?.state;
    await until(() => stateOf() === "subscribed", "a subscription");
    expect(engine.destinations()).toEqual([[customer.service.relay.relay.addresses[0], "tier-2"]]);
    const to = engine.service.relay.relay.addresses[0] ?? "";
    const sender = closing(PacedSender.open({ to }));
    const packets = traffic.completeSlot().packets.map(({ packet }) => packet);
    sender.enqueue(packets, new BigUint64Array(packets.length));
    const received = () => customer.service.relay.snapshot().sources[0]?.first;
    await until(() => received() === BigInt(packets.length), "every shred, under the source");

    engine.next.text = engine.textOf(engineSection().replace(alice.address, bob.address));
    expect(engine.service.reload()).toBe(true);
    expect(engine.destinations()).toEqual([]);
    await until(() => {
      customer.clock.move(1000);
      return stateOf() === "rejected";
    }, "a rejection");
    const problem = customer.service.relay.shredstream.statuses()[0]?.problem;
    expect(problem).toBe(`PERMISSION_DENIED: public key ${alice.address} is not registered`);
  });

  it("warns if nobody may subscribe, and reports the beginning and the end of a lease", async () => {
    const empty = await openRelay('shredstream: { listen: "127.0.0.1:0" }', local);
    expect(empty.lines.join()).toContain("shredstream.subscribers is empty");
    const warning = "relay.destinations is empty";
    expect(empty.service.warnings().join()).not.toContain(warning);
    expect((await openRelay("", local)).service.warnings().join()).toContain(warning);
    const { service, clock, lines } = await openRelay(engineSection(), local);
    const client = clientOf(service);
    await client.heartbeat((await client.login(alice)).access, "127.0.0.1", 9001);
    expect(lines.at(-1)).toContain("subscriber alice: shreds of tier-2 to 127.0.0.1:9001");
    await until(() => {
      clock.move(1000);
      return lines.join().includes("no heartbeat for 127.0.0.1:9001, stopped");
    }, "the end of the lease");
  });

  it("counts leases, refusals and connections, and logs refusals of known calls", async () => {
    const { service, clock, lines, next, textOf } = await openRelay(
      engineSection("", bobLine),
      local,
    );
    const scrape = () => service.operations?.metrics("text") ?? "";
    const check = () =>
      service.operations?.checks().find(({ name }) => name === "subscribers")?.detail;
    expect(scrape()).toContain('shredway_subscriber_leases{tier="tier-1"} 0\n');
    const client = clientOf(service);
    await expect(client.challenge(stranger)).rejects.toThrow(/not registered/);
    await expect(client.challenge(stranger)).rejects.toThrow(/not registered/);
    const { access } = await client.login(alice);
    await client.heartbeat(access, "127.0.0.1", 9001);
    clock.move(29_000);
    await client.heartbeat(access, "127.0.0.1", 9001);
    await client.heartbeat((await client.login(bob)).access, "127.0.0.1", 9002);
    await expect(client.heartbeat(access, "192.0.2.1", 9001)).rejects.toThrow(/socket.ip/);
    expect(scrape()).toContain('shredway_subscriber_leases{tier="tier-1"} 1\n');
    expect(scrape()).toContain('shredway_subscriber_leases{tier="tier-2"} 1\n');
    expect(scrape()).toMatch(/^shredway_subscriber_connections [1-9]/m);
    expect(check()).toBe(`leases at ${service.subscribers?.address}: 2`);
    next.text = textOf(engineSection());
    expect(service.reload()).toBe(true);
    await until(() => {
      clock.move(1000);
      return scrape().includes('leases{tier="tier-2"} 0');
    }, "the end of the lease");
    for (const sample of [
      'leases{tier="tier-1"} 0',
      'lease_events_total{event="begun"} 2',
      'lease_events_total{event="renewed"} 1',
      'lease_events_total{event="expired"} 1',
      'lease_events_total{event="removed"} 1',
      'refusals_total{call="challenge",status="PERMISSION_DENIED"} 2',
      'refusals_total{call="heartbeat",status="INVALID_ARGUMENT"} 1',
      "refused_connections_total 0",
    ]) {
      expect(scrape()).toContain(`shredway_subscriber_${sample}\n`);
    }
    const refusals = lines.filter((line) => line.includes("refused"));
    expect(refusals).toHaveLength(1); // at most one a minute
    expect(refusals[0]).toContain("challenge of 127.0.0.1 refused: PERMISSION_DENIED");
    expect((await openRelay("", local)).service.operations?.metrics("text")).not.toContain(
      "shredway_subscriber_",
    );
  });

  it("serves the other subscribers if one has a tier that needs a restart", async () => {
    const { service, destinations, next, textOf, lines } = await openRelay(
      engineSection("", bobLine),
      local,
    );
    const client = clientOf(service);
    const { access } = await client.login(alice);
    await client.heartbeat(access, "127.0.0.1", 9001);
    await client.heartbeat((await client.login(bob)).access, "127.0.0.1", 9002);
    const changed = engineSection("", bobLine.replace("tier-1", "tier-3"));
    next.text = textOf(changed).replace("relay:", "relay:\n  tiers: [tier-1, tier-2, tier-3]");
    expect(service.reload()).toBe(true);
    expect(lines.at(-1)).toContain("restart needed for: relay.tiers");
    await client.heartbeat(access, "127.0.0.1", 9003);
    expect(destinations()).toEqual([
      ["127.0.0.1:9001", "tier-2"],
      ["127.0.0.1:9003", "tier-2"],
    ]);
    const skipped = lines.filter((line) => line.includes('has no tier \\"tier-3\\"'));
    expect(skipped).toHaveLength(1);
  });

  it("reports keys that need a restart until they are in force", async () => {
    const { service, next, textOf, lines } = await openRelay(engineSection(), local);
    const warned = () => lines.some((line) => line.includes("restart needed"));
    const reload = (section: string) => {
      lines.length = 0;
      next.text = textOf(section);
      expect(service.reload()).toBe(true);
    };
    const changed = engineSection("tls: { certificate: cert.pem, key: key.pem }");
    for (let attempt = 0; attempt < 2; attempt++) {
      reload(changed);
      expect(lines.join()).toContain("restart needed for: shredstream.tls");
    }
    reload(engineSection());
    expect(warned()).toBe(false);
  });

  it("keeps subscribers and leases if the relay rejects those of a reload", async () => {
    const sectionOf = (key: KeyPair): NonNullable<Config["shredstream"]> => ({
      listen: "127.0.0.1:0",
      ttlSeconds: 30,
      subscribers: [{ name: "one", publicKey: key.address, tier: "tier-1", destinations: 1 }],
    });
    let isRejected = false;
    const subscribers = closing(
      new SubscriberService({
        config: sectionOf(alice),
        allowPrivate: () => true,
        isOwn: () => false,
        publish: () => {
          if (isRejected) throw new ShredwayError("config_invalid", "rejected");
        },
        randomBytes,
        clock: ManualClock.running(),
        log: createLogger({ stream: { write() {} } }),
      }),
    );
    await subscribers.start();
    const client = clientOf({ subscribers });
    const { access } = await client.login(alice);
    await client.heartbeat(access, "127.0.0.1", 9001);
    isRejected = true;
    expect(() => subscribers.apply({ ...sectionOf(bob), ttlSeconds: 60 })).toThrow("rejected");
    const renewed = await client.heartbeat(access, "127.0.0.1", 9001);
    expect(renewed).toEqual({ ttl_ms: 30_000 });
    await expect(client.login(bob)).rejects.toThrow(/not registered/);
  });

  it("refuses every wrong login", async () => {
    const { service, clock } = await openRelay(engineSection("", bobLine), local);
    const client = clientOf(service);
    const { auth, call, challenge, tokens } = client;
    const ask = (role: number, pubkey: Uint8Array) =>
      call(auth, "GenerateAuthChallenge", { role, pubkey });
    await expect(ask(1, alice.publicKey)).rejects.toThrow(/INVALID_ARGUMENT: role: expected 3/);
    await expect(ask(3, new Uint8Array(31))).rejects.toThrow(/expected 32 bytes, got 31/);
    await expect(ask(3, stranger.publicKey)).rejects.toThrow(/PERMISSION_DENIED.*not registered/);
    const text = `${alice.address}-${await challenge(alice)}`;
    await expect(tokens(text, alice, bob)).rejects.toThrow(/UNAUTHENTICATED: invalid signature/);
    await expect(tokens(text, bob)).rejects.toThrow(/unknown, used or expired challenge/);
    await expect(tokens(text.slice(0, -1), alice)).rejects.toThrow(/unknown, used or expired/);
    await expect(tokens(`${alice.address}-x`, alice)).rejects.toThrow(/unknown, used or expired/);
    const short = { challenge: text, client_pubkey: alice.publicKey, signed_challenge: "AAAA" };
    await expect(call(auth, "GenerateAuthTokens", short)).rejects.toThrow(/expected 64 bytes/);
    await tokens(text, alice);
    await expect(tokens(text, alice)).rejects.toThrow(/unknown, used or expired/); // replayed
    const late = `${alice.address}-${await challenge(alice)}`;
    clock.move(61_000);
    await expect(tokens(late, alice)).rejects.toThrow(/unknown, used or expired/);
  });

  it("refuses every wrong heartbeat, and keeps the limits", async () => {
    const { service, destinations, clock } = await openRelay(engineSection("", bobLine), local);
    const client = clientOf(service);
    const { access, refresh } = await client.login(alice);
    const { heartbeat } = client;
    const own = "127.0.0.1";
    await expect(heartbeat(undefined, own, 9001)).rejects.toThrow(/UNAUTHENTICATED/);
    await expect(heartbeat("x", own, 9001)).rejects.toThrow(/unknown or expired access token/);
    await expect(heartbeat(refresh, own, 9001)).rejects.toThrow(/expired access token/);
    await expect(client.refresh(access)).rejects.toThrow(/unknown or expired refresh token/);
    await expect(heartbeat(access, "192.0.2.1", 9001)).rejects.toThrow(
      /INVALID_ARGUMENT: socket.ip: expected 127.0.0.1, .* got 192.0.2.1/,
    );
    await expect(heartbeat(access, "localhost", 9001)).rejects.toThrow(/expected an IP address/);
    for (const port of [0, 70_000, -1]) {
      await expect(heartbeat(access, own, port)).rejects.toThrow(
        new RegExp(`socket.port: expected 1 to 65535, got ${port}`),
      );
    }
    const regions = Array.from({ length: 1000 }, (_, i) => `region-${i}`);
    await expect(heartbeat(access, own, 9001, regions)).rejects.toThrow(/at most 16 names/);
    const huge = Array.from({ length: 20 }, () => "x".repeat(1000));
    await expect(heartbeat(access, own, 9001, huge)).rejects.toThrow(/RESOURCE_EXHAUSTED/);
    const itself = Number((service.relay.relay.addresses[0] ?? "").split(":")[1]);
    await expect(heartbeat(access, own, itself)).rejects.toThrow(/a listener of the relay itself/);
    expect(destinations()).toEqual([]);
    await heartbeat(access, own, 9001);
    await heartbeat(access, own, 9002);
    await expect(heartbeat(access, own, 9003)).rejects.toThrow(/RESOURCE_EXHAUSTED: 2 addresses/);
    const other = (await client.login(bob)).access;
    await expect(heartbeat(other, own, 9001)).rejects.toThrow(/ALREADY_EXISTS/);
    expect(destinations()).toHaveLength(2);
    clock.move(25 * 3_600_000);
    await expect(client.refresh(refresh)).rejects.toThrow(/expired refresh token/);
  });

  it("ends endless calls, and bounds the connections of one address", async () => {
    const { service, clock } = await openRelay(engineSection(), local);
    const url = `http://${service.subscribers?.address}`;
    const open = () => {
      const session = connectHttp2(url);
      session.on("error", () => {});
      closing({ close: () => session.destroy() });
      return session;
    };
    const stream = open().request({
      ":method": "POST",
      ":path": "/auth.AuthService/GenerateAuthChallenge",
      "content-type": "application/grpc",
    });
    stream.on("error", () => {});
    stream.write(Buffer.alloc(3));
    let isClosed = false;
    stream.on("close", () => {
      isClosed = true;
    });
    await until(() => {
      clock.move(1000);
      return isClosed;
    }, "the end of the call");
    const others = Array.from({ length: 20 }, open);
    await until(() => others.filter(({ destroyed }) => destroyed).length === 5, "refusals");
    expect(service.subscribers?.status().refusedConnections).toBe(5);
    for (const session of others) session.destroy();
    let access = "";
    // The server may not have noticed the ends of all connections yet.
    while (access === "") {
      const login = clientOf(service).login(alice);
      access = await login.then(
        (tokens) => tokens.access,
        (error: Error) => {
          expect(error.message).toContain("UNAVAILABLE");
          return "";
        },
      );
    }
  });

  it("refuses unknown methods and malformed requests, and survives noise", async () => {
    const { service } = await openRelay(engineSection(), local);
    const client = clientOf(service);
    const raw = (path: string, bytes: Uint8Array) =>
      new Promise<string>((resolve) => {
        const identity = (value: Buffer) => value;
        client.auth.makeUnaryRequest(path, identity, identity, Buffer.from(bytes), (error) =>
          resolve(error?.message ?? "accepted"),
        );
      });
    expect(await raw("/auth.AuthService/Unknown", new Uint8Array())).toMatch(/UNIMPLEMENTED/);
    expect(service.subscribers?.status().refusals).toEqual([
      { call: "unknown", status: "UNIMPLEMENTED", count: 1 },
    ]);
    const path = "/auth.AuthService/GenerateAuthChallenge";
    expect(await raw(path, Uint8Array.of(0x0a, 0x7f))).toMatch(/INVALID_ARGUMENT: malformed/);
    expect(await raw(path, new Uint8Array(20_000))).toMatch(/RESOURCE_EXHAUSTED/);
    const port = Number(service.subscribers?.address.split(":")[1]);
    const noise = connect(port, "127.0.0.1");
    noise.on("error", () => {});
    noise.resume();
    noise.write(randomBytes(1000));
    await new Promise((resolve) => noise.once("close", resolve));
    expect((await client.login(alice)).access).not.toBe("");
  });
});
