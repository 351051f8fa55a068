// The cluster nodes of a node's answer: parsed, and rejected in another shape.

import { createServer } from "node:http";
import { describe, expect, it } from "vitest";
import { RpcClient } from "../../../src/platform/solana/rpc-client.ts";
import { closing } from "../../support/closing.ts";

/** A busy machine takes long to write and to read large answers. */
const hangMs = 60_000;

async function clientOf(result: unknown): Promise<RpcClient> {
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const { id } = JSON.parse(Buffer.concat(chunks).toString());
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing({ close: () => void server.close() });
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("expected a port, got none");
  return new RpcClient(`http://127.0.0.1:${address.port}/`, hangMs);
}

describe("clusterNodes", () => {
  it("returns the TPU address of each identity", async () => {
    const node = await clientOf([
      { pubkey: "a", gossip: "1.2.3.4:8000", tpuQuic: "1.2.3.4:8009", version: "4.2.0" },
      { pubkey: "b", tpuQuic: null },
      { pubkey: "c" },
    ]);
    expect(await node.clusterNodes()).toEqual([
      { identity: "a", tpuQuic: "1.2.3.4:8009" },
      { identity: "b", tpuQuic: null },
      { identity: "c", tpuQuic: null },
    ]);
  });

  it("accepts an answer with many nodes, and limits its size", async () => {
    const nodes = (count: number) =>
      Array.from({ length: count }, (_, i) => ({ pubkey: `${i}`.padEnd(44, "x"), more: "" }));
    expect((await (await clientOf(nodes(10_000))).clusterNodes()).length).toBe(10_000);
    await expect((await clientOf(nodes(300_000))).clusterNodes()).rejects.toThrow(
      /expected at most 16777216 bytes, got more/,
    );
  });

  it.each([
    ["no list", {}],
    ["a number", [7]],
    ["an invalid identity", [{ pubkey: 1, tpuQuic: null }]],
    ["an invalid address", [{ pubkey: "a", tpuQuic: 8009 }]],
  ])("refuses %s", async (_what, result) => {
    const node = await clientOf(result);
    await expect(node.clusterNodes()).rejects.toThrow(/getClusterNodes at .*expected/);
  });
});
