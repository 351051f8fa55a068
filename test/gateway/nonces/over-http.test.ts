// getNonce with real HTTP, keys, SQLite, key files, RPC and sandbox chain (only the co-signing
// check is a stub), and web3.js 1.x as the client. The service is restarted, loses its database,
// and is called with revoked keys.

import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { type Connection, LAMPORTS_PER_SOL, PublicKey } from "@solana/web3.js";
import { describe, expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { isObject } from "../../../src/core/values.ts";
import { keyRandomBytes, newApiKey } from "../../../src/gateway/accounts/api-keys.ts";
import { KeyRing } from "../../../src/gateway/accounts/key-ring.ts";
import { NonceService, nonceServiceLimitsFor } from "../../../src/gateway/nonces/nonce-service.ts";
import type { NonceInfo } from "../../../src/gateway/nonces/types.ts";
import { makeKeyFile, openNonceKeys } from "../../../src/platform/solana/key-file.ts";
import { RpcClient } from "../../../src/platform/solana/rpc-client.ts";
import { Store } from "../../../src/platform/store/store.ts";
import { encodeBase58 } from "../../../src/relay/data-plane/base58.ts";
import { Cluster } from "../../clients/cluster.ts";
import { closing } from "../../support/closing.ts";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { stockConnection } from "../../support/quic/stock-connection.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { addressOf, bob } from "../../support/transactions/chain.ts";
import { client, realCheck, unsignedTransfer } from "./nonce-harness.ts";

const log = createLogger({ level: "silent" });

/** State that survives the processes. */
interface TestService {
  readonly cluster: Cluster;
  readonly connection: Connection;
  readonly fundingFile: string;
  readonly authorityFile: string;
}

async function openTestService(): Promise<TestService> {
  const folder = temporaryFolder();
  const fundingFile = join(folder, "funding.json");
  const authorityFile = join(folder, "authority.json");
  const funding = makeKeyFile(fundingFile);
  makeKeyFile(authorityFile);
  const cluster = closing(await Cluster.open());
  const connection = stockConnection(cluster.url, "confirmed");
  for (const address of [funding.address, addressOf(client), addressOf(bob)]) {
    cluster.chain.airdrop(address, BigInt(LAMPORTS_PER_SOL));
  }
  while ((await connection.getBalance(bob.publicKey)) === 0) await systemClock.sleep(20);
  return { cluster, connection, fundingFile, authorityFile };
}

/** The service on a data folder. */
class Service {
  readonly store: Store;
  readonly service: NonceService;
  readonly #run: GatewayRun;
  readonly #ring: KeyRing;
  #isClosed = false;

  static async open(testService: TestService, directory: string): Promise<Service> {
    const store = await Store.open({ directory, clock: systemClock, log, isService: true });
    const service = await NonceService.open(
      {
        clock: systemClock,
        log,
        node: new RpcClient(testService.cluster.url, 4000),
        store: store.nonces,
        keys: openNonceKeys(testService.fundingFile, testService.authorityFile),
        check: realCheck,
        encode: encodeBase58,
      },
      nonceServiceLimitsFor(100),
    );
    const ring = new KeyRing();
    ring.replace(await store.keys.keys());
    const run = await GatewayRun.open({}, { clock: systemClock, keys: ring, nonces: service });
    return closing(new Service(store, service, ring, run));
  }

  private constructor(store: Store, service: NonceService, ring: KeyRing, run: GatewayRun) {
    this.store = store;
    this.service = service;
    this.#ring = ring;
    this.#run = run;
  }

  async newKey(name: string): Promise<{ text: string; id: string }> {
    const account = await this.store.keys.ensureAccount(name, systemClock.nowNs());
    const wishes = {
      accountId: account.id,
      accountName: name,
      label: "",
      scopes: ["submit" as const],
      requestsPerSecond: null,
      burst: null,
      allowedRanges: [],
    };
    const { text, key } = newApiKey(wishes, randomBytes(keyRandomBytes), systemClock.nowNs());
    await this.store.keys.addKey(key);
    await this.refresh();
    return { text, id: key.id };
  }

  async refresh(): Promise<void> {
    this.#ring.replace(await this.store.keys.keys());
  }

  /** Calls like a client that retries when requested. */
  async getNonce(key: string, text = key): Promise<NonceInfo> {
    for (;;) {
      const { body } = await this.#run.call("getNonce", [text], `/relay?api-key=${key}`);
      const { result, error } = isObject(body) ? body : {};
      if (isObject(result)) {
        const { nonce, nonceAccount, nonceAuthority } = result;
        return {
          nonce: String(nonce),
          nonceAccount: String(nonceAccount),
          nonceAuthority: String(nonceAuthority),
        };
      }
      const reason = isObject(error) && isObject(error["data"]) ? error["data"]["reason"] : null;
      if (reason !== "nonce_pending") throw new Error(JSON.stringify(body));
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#run.server.close();
    await this.service.close();
    await this.store.close();
  }
}

function nonceOn({ connection }: TestService, { nonceAccount }: NonceInfo) {
  return connection.getNonce(new PublicKey(nonceAccount));
}

describe("getNonce over HTTP", () => {
  it("creates an account that web3.js accepts, whose transactions land, and which survives a restart", async () => {
    const testService = await openTestService();
    const directory = temporaryFolder();
    const before = await Service.open(testService, directory);
    const [mine, theirs] = [await before.newKey("mine"), await before.newKey("theirs")];
    const [info, other] = await Promise.all([
      before.getNonce(mine.text),
      before.getNonce(theirs.text),
    ]);
    expect(new Set([info.nonceAccount, other.nonceAccount]).size).toBe(2);
    const account = await nonceOn(testService, info);
    expect(account?.nonce).toBe(info.nonce);
    expect(account?.authorizedPubkey.toBase58()).toBe(info.nonceAuthority);
    await before.close();

    const after = await Service.open(testService, directory);
    expect(await after.getNonce(mine.text)).toEqual(info);
    expect(await after.getNonce(theirs.text, other.nonceAccount)).toEqual(other);
    expect(await after.getNonce(theirs.text, info.nonceAccount)).toEqual(info); // no secrets
    const wire = await after.service.coSign(info.nonceAccount, unsignedTransfer(info));
    const signature = await testService.connection.sendRawTransaction(wire, {
      skipPreflight: true,
    });
    const { value } = await testService.connection.confirmTransaction(
      {
        signature,
        minContextSlot: await testService.connection.getSlot(),
        nonceAccountPubkey: new PublicKey(info.nonceAccount),
        nonceValue: info.nonce,
      },
      "confirmed", // otherwise a nonce with another value must be finalized
    );
    expect(value.err).toBeNull();
    let next = info;
    while (next.nonce === info.nonce) next = await after.getNonce(mine.text);
    expect(next).toEqual({ ...info, nonce: (await nonceOn(testService, info))?.nonce });
  });

  it("does not reassign the account of a revoked or rotated key", async () => {
    const testService = await openTestService();
    const service = await Service.open(testService, temporaryFolder());
    const old = await service.newKey("one");
    const info = await service.getNonce(old.text);
    await service.store.keys.revokeKey(old.id, systemClock.nowNs());
    await service.refresh();
    await expect(service.getNonce(old.text)).rejects.toThrow("unauthorized");
    const fresh = await service.newKey("one"); // the same account of the service
    await expect(service.getNonce(fresh.text, old.text)).rejects.toThrow("value_invalid");
    expect((await service.getNonce(fresh.text)).nonceAccount).not.toBe(info.nonceAccount);
    expect(service.service.ownerOf(info.nonceAccount)?.keyId).toBe(old.id);
  });

  it("finds the same account after the loss of the database and advances it for its new key", async () => {
    const testService = await openTestService();
    const before = await Service.open(testService, temporaryFolder());
    const info = await before.getNonce((await before.newKey("former")).text);
    const wire = await before.service.coSign(info.nonceAccount, unsignedTransfer(info));
    await before.close();

    const after = await Service.open(testService, temporaryFolder());
    const restarted = await after.getNonce((await after.newKey("new")).text);
    expect(restarted.nonceAccount).toBe(info.nonceAccount);
    expect(restarted.nonceAuthority).toBe(info.nonceAuthority);
    expect(restarted.nonce).not.toBe(info.nonce);
    const { publicKey } = bob;
    const balance = await testService.connection.getBalance(publicKey, "processed");
    await testService.connection.sendRawTransaction(wire, { skipPreflight: true });
    const slot = await testService.connection.getSlot("processed");
    while ((await testService.connection.getSlot("processed")) < slot + 5)
      await systemClock.sleep(20);
    expect(await testService.connection.getBalance(publicKey, "processed")).toBe(balance);
  });

  it("reports an unavailable node and recovers when it is back", async () => {
    const testService = await openTestService();
    const service = await Service.open(testService, temporaryFolder());
    const key = await service.newKey("one");
    testService.cluster.endpoint.faults.refuse = "unavailable";
    await expect(service.getNonce(key.text)).rejects.toThrow("rpc_failed");
    testService.cluster.endpoint.faults.refuse = "nothing";
    const info = await service.getNonce(key.text);
    expect((await nonceOn(testService, info))?.nonce).toBe(info.nonce);
  });
});
