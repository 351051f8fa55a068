// A client with ngtcp2 and GnuTLS submits to the running sandbox with a registered Ed25519 key, as
// validators' clients do: a self-signed certificate, one unidirectional stream for each transaction.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { encodeBase58 } from "../../src/core/base58.ts";
import { KeyPair } from "../../src/core/key-pair.ts";
import { parsePubkey, pubkeyBytes } from "../../src/core/primitives.ts";
import { credentialsOf, newEcdsaCredentials } from "../../src/core/quic/certificate.ts";
import type { QuicheCredentials } from "../../src/core/quic/quiche.ts";
import { buildTransaction, transferInstruction } from "../../src/core/transactions/build-legacy.ts";
import { isObject } from "../../src/core/values.ts";
import { keyRandomBytes, newApiKey } from "../../src/gateway/accounts/api-keys.ts";
import { claimTextOf } from "../../src/gateway/accounts/public-key-proof.ts";
import type { PublicKeyPurpose } from "../../src/gateway/accounts/public-key-types.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { SandboxKeyPair } from "../../src/sandbox/chain/keys.ts";
import { sandboxPace } from "../../src/sandbox/plan.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { Ngtcp2Client } from "../support/quic/interop/ngtcp2-client.ts";
import {
  buildNgtcp2,
  buildTimeoutMs,
  ngtcp2Problem,
} from "../support/quic/interop/ngtcp2-leader.ts";
import { describeQuic } from "../support/quic/quic-server.ts";

let folder = "";
let program = "";

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "shredway-"));
  if (ngtcp2Problem === null) program = buildNgtcp2("ngtcp2-client", folder);
}, buildTimeoutMs);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

const customer = SandboxKeyPair.named(sandboxPace.seed, "customer");

interface Identity {
  readonly pair: KeyPair;
  readonly credentials: QuicheCredentials;
}

function newIdentity(): Identity {
  const seed = randomBytes(32);
  return { pair: new KeyPair(seed), credentials: credentialsOf(seed) };
}

function connect(sandbox: Sandbox, credentials: QuicheCredentials | null): Ngtcp2Client {
  const address = sandbox.quicAddresses[0] ?? "";
  return Ngtcp2Client.open({ program, address, protocol: "solana-tpu", credentials });
}

async function register(
  sandbox: Sandbox,
  { pair }: Identity,
  purpose: PublicKeyPurpose = "tpu",
): Promise<void> {
  const node = new RpcClient(sandbox.gatewayUrl);
  const known = await node.call("getPublicKeys");
  const accountId = isObject(known) ? String(known["account"]) : "";
  const expiresAt = new Date(Date.now() + 600_000).toISOString();
  const claim = { publicKey: pair.address, purpose, expiresAt };
  const text = claimTextOf({ accountId, ...claim });
  const signature = encodeBase58(pair.sign(Buffer.from(text)));
  await node.call("registerPublicKey", [{ ...claim, signature }]);
}

let amount = 10_000n;

async function tipping({ gatewayUrl }: Sandbox): Promise<{ wire: Uint8Array; signature: string }> {
  const node = new RpcClient(gatewayUrl);
  const blockhash = pubkeyBytes(parsePubkey(await node.latestBlockhash()));
  const accounts = await node.call("getTipAccounts");
  const tipAccount = pubkeyBytes(parsePubkey(Array.isArray(accounts) ? String(accounts[0]) : ""));
  const instruction = transferInstruction(customer.publicKey, tipAccount, ++amount);
  const wire = buildTransaction([customer], [instruction], blockhash);
  return { wire, signature: encodeBase58(wire.subarray(1, 65)) };
}

/** Sends until the transaction is known, and waits until it has landed. */
async function land(sandbox: Sandbox, client: Ngtcp2Client): Promise<unknown> {
  const { wire, signature } = await tipping(sandbox);
  client.send(wire);
  let status: unknown;
  await expect
    .poll(async () => {
      const node = new RpcClient(sandbox.gatewayUrl);
      status = await node.call("getTransactionStatus", [signature]);
      return status;
    })
    .toMatchObject({ state: "landed" });
  return status;
}

const disallowed = /^app 2 unauthorized: /;

describe.skipIf(ngtcp2Problem !== null)("a client with a registered public key", () => {
  describeQuic("and the dialect solana-tpu", () => {
    it("lands transactions, and is closed within a second when the key is removed", async () => {
      const sandbox = await runningSandbox("127.0.0.1:0", { quic: "127.0.0.1:0" });
      const identity = newIdentity();
      const early = connect(sandbox, identity.credentials);
      expect(await early.ended()).toMatch(disallowed);
      await register(sandbox, identity);
      const client = connect(sandbox, identity.credentials);
      expect(await land(sandbox, client)).toMatchObject({
        events: expect.arrayContaining([expect.objectContaining({ ingress: "quic" })]),
      });
      expect(await land(sandbox, client)).toBeDefined();
      const metrics = await (await fetch(new URL("/metrics", sandbox.gatewayUrl))).text();
      expect(metrics).toContain('shredway_quic_connections{protocol="solana-tpu"} 1\n');
      await new RpcClient(sandbox.gatewayUrl).call("removePublicKey", [identity.pair.address]);
      expect(await client.ended()).toMatch(/^app 2 unauthorized: the public key was removed/);
      expect(await connect(sandbox, identity.credentials).ended()).toMatch(disallowed);
    });

    it("is refused with a key of another type, or a key for another purpose", async () => {
      const sandbox = await runningSandbox("127.0.0.1:0", { quic: "127.0.0.1:0" });
      const key = new URL(sandbox.gatewayUrl).searchParams.get("api-key") ?? "";
      // The common name is an API key, which identifies no client of this dialect.
      expect(await connect(sandbox, newEcdsaCredentials(key)).ended()).toMatch(disallowed);
      expect(await connect(sandbox, null).ended()).toMatch(/^transport 372/);
      const subscriber = newIdentity();
      await register(sandbox, subscriber, "shredstream");
      expect(await connect(sandbox, subscriber.credentials).ended()).toMatch(disallowed);
    });

    it("stays connected through a rotation, and is closed with its API key", async () => {
      const sandbox = await runningSandbox("127.0.0.1:0", { quic: "127.0.0.1:0" });
      const identity = newIdentity();
      await register(sandbox, identity);
      const client = connect(sandbox, identity.credentials);
      await land(sandbox, client);
      const { gateway } = sandbox;
      const nowNs = (): bigint => BigInt(Date.now()) * 1_000_000n;
      const text = new URL(sandbox.gatewayUrl).searchParams.get("api-key") ?? "";
      const old = (await gateway.keys.keys()).find(({ hint }) => text.startsWith(hint));
      if (!old) throw new Error("expected the sandbox's API key");
      const { key } = newApiKey(old, randomBytes(keyRandomBytes), nowNs());
      await gateway.keys.replaceKey(old.id, nowNs() + 3_600_000_000_000n, key);
      await gateway.refreshKeys();
      await gateway.keys.revokeKey(old.id, nowNs());
      await gateway.refreshKeys();
      const again = connect(sandbox, identity.credentials);
      await again.established();
      expect(client.end).toBeNull();
      await gateway.keys.revokeKey(key.id, nowNs());
      await gateway.refreshKeys();
      expect(await client.ended()).toMatch(/^app 2 unauthorized: the public key was removed/);
      expect(await again.ended()).toMatch(disallowed);
    });
  });
});
