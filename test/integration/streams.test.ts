// Decoded streams of a whole sandbox: live transactions, a real API key, and its revocation.

import { spawn } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { status } from "@grpc/grpc-js";
import { describe, expect, it } from "vitest";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { programWords } from "../support/processes/shredway.ts";
import {
  metadataOf,
  subscribeDeshred,
  subscribeEntries,
} from "../support/streams/stream-clients.ts";
import { StreamSocket } from "../support/streams/stream-sockets.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

describe("decoded streams of the sandbox", () => {
  it("carry the chain's transactions until the key is revoked", async () => {
    const sandbox = await runningSandbox("127.0.0.1:0", { streams: "127.0.0.1:0" });
    const key = new URL(sandbox.gatewayUrl).searchParams.get("api-key") ?? "";
    const metadata = metadataOf({ authorization: `Bearer ${key}` });
    const request = { deshred_transactions: { all: { vote: false } }, slots: { slots: {} } };
    const deshred = subscribeDeshred(sandbox.streamsAddress, request, { metadata });
    const entries = subscribeEntries(sandbox.streamsAddress, metadataOf({ "x-api-key": key }));
    const transactions = () => deshred.messages.filter((one) => one.deshred_transaction);
    await until(
      () => transactions().length > 5 && entries.messages.length > 5,
      "transactions and entries",
    );
    const signatures = transactions().map((one) =>
      one.deshred_transaction?.transaction.signature.toString("hex"),
    );
    expect(new Set(signatures).size).toBe(signatures.length);
    // The URL of the first screen, as a client of QuickNode uses it.
    const socket = await StreamSocket.open(sandbox.gatewayUrl.replace("http", "ws"));
    await socket.subscribe("shredTransactionSubscribe", [{ vote: false }]);
    await until(() => socket.notifications.length > 5, "notifications");
    const { service, gateway } = sandbox;
    const metrics = service.operations?.metrics("text") ?? "";
    expect(metrics).toContain('shredway_stream_open{account="sandbox",dialect="deshred"} 1');
    expect(metrics).toContain('shredway_stream_open{account="sandbox",dialect="entries"} 1');
    expect(metrics).toContain(
      'shredway_stream_open{account="sandbox",dialect="shred_transaction"} 1',
    );
    const [apiKey] = await gateway.keys.keys();
    await gateway.keys.revokeKey(apiKey?.id ?? "", 1n);
    await gateway.refreshKeys();
    await until(() => deshred.end !== undefined && entries.end !== undefined, "both ends");
    for (const { end } of [deshred, entries]) {
      expect(end).toMatchObject({
        code: status.UNAUTHENTICATED,
        details: expect.stringMatching(/^revoked: /),
      });
    }
    await until(() => socket.end !== undefined, "the end of the WebSocket");
    expect(socket.end).toMatchObject({ code: 1008, reason: expect.stringMatching(/^revoked: /) });
  });

  it("are printed by shredway stream, with the key in the sandbox's folder", async () => {
    const folder = temporaryFolder();
    const sandbox = await runningSandbox("127.0.0.1:0", {
      streams: "127.0.0.1:0",
      data: join(folder, "data"),
    });
    for (const dialect of ["deshred", "entries"]) {
      const words = ["stream", "--dialect", dialect, "--count", "5", "--json"];
      const child = spawn(process.execPath, [...programWords, ...words], {
        cwd: folder,
        env: { ...process.env, SHREDWAY_STREAMS_URL: `http://${sandbox.streamsAddress}` },
        stdio: ["ignore", "pipe", "ignore"],
      });
      const lines = (await text(child.stdout)).trimEnd().split("\n");
      const signatures = lines.map((line) => /"signature":"(\w{64,88})"/.exec(line)?.[1]);
      expect(new Set(signatures).size).toBe(5);
      expect(signatures).not.toContain(undefined);
    }
  });
});
