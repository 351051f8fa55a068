// The QUIC ingress in the complete sandbox: a transaction from a client's stream to a block.

import { expect, it } from "vitest";
import { parsePubkey, pubkeyBytes } from "../../src/core/primitives.ts";
import { newEcdsaCredentials } from "../../src/core/quic/certificate.ts";
import { buildTransaction, transferInstruction } from "../../src/core/transactions/build-legacy.ts";
import { RpcClient } from "../../src/platform/solana/rpc-client.ts";
import { SandboxKeyPair } from "../../src/sandbox/chain/keys.ts";
import { sandboxPace } from "../../src/sandbox/plan.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { QuicClient } from "../support/quic/quic-client.ts";
import { describeQuic } from "../support/quic/quic-server.ts";
import { readResponse } from "../support/quic/response-frames.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** The sandbox's wallet with SOL. */
const customer = SandboxKeyPair.named(sandboxPace.seed, "customer");

function keyOf({ gatewayUrl }: Sandbox): string {
  return new URL(gatewayUrl).searchParams.get("api-key") ?? "";
}

async function tipping(sandbox: Sandbox): Promise<Uint8Array> {
  const node = new RpcClient(sandbox.gatewayUrl);
  const blockhash = pubkeyBytes(parsePubkey(await node.latestBlockhash()));
  const accounts = await node.call("getTipAccounts");
  const tipAccount = pubkeyBytes(parsePubkey(Array.isArray(accounts) ? String(accounts[0]) : ""));
  const instruction = transferInstruction(customer.publicKey, tipAccount, 10_001n);
  return buildTransaction([customer], [instruction], blockhash);
}

function connect(sandbox: Sandbox): Promise<QuicClient> {
  return QuicClient.open(sandbox.quicAddresses[0] ?? "", {
    credentials: newEcdsaCredentials(keyOf(sandbox)),
    protocol: "shredway-tpu",
  });
}

describeQuic("the sandbox", () => {
  it("lands a transaction from QUIC, and its timeline names the ingress", async () => {
    const sandbox = await runningSandbox("127.0.0.1:0", { quic: "127.0.0.1:0" });
    expect(sandbox.quicAddresses.length).toBe(2);
    const client = await connect(sandbox);
    const { status, body } = readResponse(await client.request(await tipping(sandbox)));
    expect(status).toBe(200);
    const node = new RpcClient(sandbox.gatewayUrl);
    let answer: unknown;
    await expect
      .poll(async () => {
        answer = await node.call("getTransactionStatus", [[body]]);
        return answer;
      })
      .toMatchObject([{ state: "landed" }]);
    const metrics = async () => (await fetch(new URL("/metrics", sandbox.gatewayUrl))).text();
    // The process reports its connections from time to time.
    await expect.poll(metrics).toContain('shredway_quic_connections{protocol="shredway-tpu"} 1\n');
    expect(await metrics()).toContain('shredway_quic_submissions_total{outcome="accepted"} 1\n');
    expect(answer).toMatchObject([
      { events: expect.arrayContaining([expect.objectContaining({ ingress: "quic" })]) },
    ]);
  });

  it("closes the connections of a revoked key, and keeps its certificate", async () => {
    const data = temporaryFolder();
    const sandbox = await runningSandbox("127.0.0.1:0", { quic: "127.0.0.1:0", data });
    const client = await connect(sandbox);
    expect(readResponse(await client.request(await tipping(sandbox))).status).toBe(200);
    const [certificate] = client.quic.peerCertChain() ?? [];
    const { keys } = sandbox.gateway;
    for (const { id } of await keys.keys())
      await keys.revokeKey(id, BigInt(Date.now()) * 1_000_000n);
    await sandbox.gateway.refreshKeys();
    expect(await client.ended).toMatchObject({ by: "peer", isApp: true, code: 1 });
    await sandbox.close();
    const next = await runningSandbox("127.0.0.1:0", { quic: "127.0.0.1:0", data });
    const again = await connect(next);
    await until(() => again.quic.isEstablished(), "a connection");
    expect(again.quic.peerCertChain()?.[0]).toEqual(certificate);
  });
});
