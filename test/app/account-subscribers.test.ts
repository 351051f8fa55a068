// An account's public key as a subscriber of the block engine: registration, tier, removal. Real services.

import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { AccountSubscribers } from "../../src/app/account-subscribers.ts";
import { openService } from "../../src/app/open-service.ts";
import { systemClock } from "../../src/core/clock.ts";
import { parseConfig } from "../../src/core/configuration/configuration.ts";
import { GrpcChannel } from "../../src/core/grpc/grpc-channel.ts";
import { KeyPair } from "../../src/core/key-pair.ts";
import { createLogger } from "../../src/core/log.ts";
import { keyRandomBytes } from "../../src/gateway/accounts/api-keys.ts";
import { createKey } from "../../src/gateway/accounts/create-key.ts";
import { claimTextOf } from "../../src/gateway/accounts/public-key-proof.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { authenticate, sendHeartbeat } from "../../src/relay/shredstream/block-engine.ts";
import type { Subscriber } from "../../src/relay/shredstream/subscriber-leases.ts";
import { ManualClock } from "../support/clocks/manual-clock.ts";
import { closing } from "../support/closing.ts";
import { apiKey, tipAddress } from "../support/gateway/gateway.ts";
import { TestPublicKeys } from "../support/gateway/public-keys.ts";
import { until } from "../support/network/udp-receiver.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { tipping } from "../support/transactions/tipping.ts";

const newAddress = (): string => new KeyPair(randomBytes(32)).address;

async function open() {
  const folder = temporaryFolder();
  const text = `relay:
  listen: "127.0.0.1:0"
  shredVersion: 99
  authentication: off
  allowPrivateDestinations: true
  receive: { bufferBytes: 1000000 }
shredstream: { listen: "127.0.0.1:0" }
http: { listen: "127.0.0.1:0", webSocketListen: [] }
tips: { addresses: [${tipAddress}], shredAddresses: [${tipAddress}] }
data: { directory: ${folder} }
`;
  const readConfig = () => parseConfig(text, join(folder, "a.yaml"));
  writeFileSync(join(folder, "a.yaml"), text);
  const log = createLogger({ level: "silent" });
  const config = readConfig();
  const dependencies = { config, readConfig, log, clock: systemClock, prefault: false };
  const service = closing(await openService(dependencies));
  await service.start();
  const { gateway } = service;
  if (!gateway) throw new Error("expected a gateway");
  const settings = {
    accountName: "one",
    label: "",
    scopes: ["shreds"] as const,
    requestsPerSecond: null,
    burst: null,
    allowedRanges: [],
  };
  const chance = { random: randomBytes(keyRandomBytes), nowNs: systemClock.nowNs() };
  const { text: key, key: ownKey } = await createKey(gateway.keys, settings, chance);
  await gateway.refreshKeys();
  const base = `http://${gateway.addresses[0]}`;
  const { accountId } = ownKey;
  const node = new RpcClient(`${base}/relay?api-key=${key}`);

  const channel = closing(
    new GrpcChannel({ url: `http://${service.subscribers?.address}`, clock: systemClock }),
  );

  /** Registers the public key of a proxy. */
  async function register(pair: KeyPair): Promise<void> {
    const expiresAt = new Date(Date.now() + 600_000).toISOString();
    const claim = { publicKey: pair.address, purpose: "shredstream" as const, expiresAt };
    const claimText = claimTextOf({ accountId, ...claim });
    const signature = Buffer.from(pair.sign(Buffer.from(claimText))).toString("base64");
    await node.call("registerPublicKey", [{ ...claim, signature }]);
    await expect.poll(() => authenticate(channel, pair).then(() => "in", String)).toBe("in");
  }

  async function payForTier(): Promise<void> {
    const tip = Buffer.from(tipping({ tip: 10_000_000_000n })).toString("base64");
    const body = JSON.stringify([{ transaction: tip, slot: 1 }]);
    const url = `${base}/shred-pay?api-key=${key}&verbose=true`;
    expect((await fetch(url, { method: "POST", body })).status).toBe(200);
  }

  /** The function sends a heartbeat for a UDP port of this machine. */
  async function login(pair: KeyPair): Promise<(port: bigint) => Promise<number>> {
    const { access } = await authenticate(channel, pair);
    return (port) => sendHeartbeat(channel, access, { ip: "127.0.0.1", port, regions: [] });
  }

  const destinations = () =>
    service.relay.snapshot().destinations.map((each) => [each.address, each.tier, each.name]);
  return { service, gateway, accountId, node, register, payForTier, login, destinations };
}

it("serves an account's public key by the account's tier, until it is removed", async () => {
  const { service, gateway, accountId, node, register, payForTier, login, destinations } =
    await open();
  const pair = new KeyPair(randomBytes(32));
  await expect(login(pair)).rejects.toThrow(/not registered/);
  await register(pair);
  const heartbeatFor = await login(pair);
  const heartbeat = () => heartbeatFor(9001n);
  await expect(heartbeat()).rejects.toThrow(/has no tier/);
  await payForTier();
  await expect.poll(() => heartbeat().catch(String)).toBe(120_000);
  const tier = gateway.shreds?.tiers.tierOf(accountId);
  const name = `one/${pair.address.slice(0, 8)} 127.0.0.1:9001`;
  expect(destinations()).toEqual([["127.0.0.1:9001", tier, name]]);

  // A reload of the configuration keeps accounts' subscribers.
  expect(service.reload()).toBe(true);
  expect(destinations()).toHaveLength(1);
  await node.call("removePublicKey", [pair.address]);
  await until(() => destinations().length === 0, "the end of the lease");
  await expect(heartbeat()).rejects.toThrow(/not registered|token/);
  await expect(login(pair)).rejects.toThrow(/not registered/);
});

it("limits the destinations and proxies of an account together", async () => {
  const { service, node, register, payForTier, login, destinations } = await open();
  const pairs = Array.from({ length: 3 }, () => new KeyPair(randomBytes(32)));
  for (const pair of pairs) await register(pair);
  await payForTier();
  const [first, second, third] = await Promise.all(pairs.map(login));
  if (!first || !second || !third) throw new Error("expected three proxies");
  await expect.poll(() => first(9001n).catch(String)).toBe(120_000);
  await second(9002n);
  await expect(third(9003n)).rejects.toThrow(
    "RESOURCE_EXHAUSTED: the account uses 2 addresses (destinations: 0, proxies: 2); expected at most 2 " +
      "together. Remove a destination or stop another proxy",
  );
  expect(await first(9001n)).toBe(120_000); // renewed

  const add = () =>
    node.call("addDestination", [{ region: "frankfurt", address: "127.0.0.1:9009" }]);
  await expect(add()).rejects.toThrow(/the account already has the maximum number/);
  await node.call("removePublicKey", [pairs[0]?.address]);
  await until(() => destinations().length === 1, "the end of the first proxy's lease");
  await add();
  expect(await second(9002n)).toBe(120_000);
  await expect(third(9003n)).rejects.toThrow(/destinations: 1, proxies: 1/);
  expect(service.subscribers?.status().leases.get("tier-2")).toBe(1);
});

it("follows the tier of the account, and the end of the API key", async () => {
  const clock = new ManualClock();
  const apiKeys = new Map([["one", apiKey("one")]]);
  const { publicKeys, add } = new TestPublicKeys(clock, () => apiKeys.values());
  const [shredstream, tpu] = [newAddress(), newAddress()];
  add(apiKey("one"), shredstream, "shredstream");
  add(apiKey("one"), tpu, "tpu");
  let tier: string | null = null;
  const published: (readonly Subscriber[])[] = [];
  const subscribers = {
    setAccountSubscribers: (all: readonly Subscriber[]) => void published.push(all),
  };
  const tiers = { tierOf: () => tier };
  const log = { error: () => {} };
  closing(new AccountSubscribers({ publicKeys, tiers, subscribers, clock, log }));
  await clock.advance(3000);
  tier = "tier-1";
  await clock.advance(1000);
  apiKeys.clear();
  await clock.advance(900); // it must apply within a second
  const name = `one/${shredstream.slice(0, 8)}`;
  const accountId = apiKey("one").accountId;
  const subscriber = { name, publicKey: shredstream, tier: null, destinations: 1, accountId };
  expect(published).toEqual([[subscriber], [{ ...subscriber, tier: "tier-1" }], []]);
});

it("publishes a change again while the relay rejects it, and logs that once", async () => {
  const clock = new ManualClock();
  const { publicKeys, add } = new TestPublicKeys(clock, () => [apiKey("one")]);
  add(apiKey("one"), newAddress(), "shredstream");
  let [isRejecting, attempts, errors] = [true, 0, 0];
  const subscribers = {
    setAccountSubscribers: () => {
      attempts++;
      if (isRejecting) throw new Error("too many destinations");
    },
  };
  const log = { error: () => void errors++ };
  const tiers = { tierOf: () => "tier-1" };
  closing(new AccountSubscribers({ publicKeys, tiers, subscribers, clock, log }));
  await clock.advance(3000);
  expect([attempts, errors]).toEqual([12, 1]);
  isRejecting = false;
  await clock.advance(3000);
  expect([attempts, errors]).toEqual([13, 1]);
});
