// The stock client helius-laserstream against the running service: SubscribePreprocessed, decoded by its
// own code.

import { createRequire } from "node:module";
import type { LaserstreamConfig, SubscribePreprocessedUpdate } from "helius-laserstream";
import { describe, expect, it } from "vitest";
import { encodeBase58 } from "../../../src/core/base58.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { type RunningStreams, runningStreams } from "../../support/streams/stream-clients.ts";
import {
  accountOf,
  batchOf,
  slotOf,
  transactionOf,
  v0TransactionOf,
} from "../../support/streams/stream-relay.ts";
import { inForce } from "../../support/streams/stream-sockets.ts";

/** undefined: the package has no binary for this processor. */
function stockClient(): typeof import("helius-laserstream") | undefined {
  try {
    return createRequire(import.meta.url)("helius-laserstream");
  } catch {
    return undefined;
  }
}

const client = stockClient();

async function subscribed(
  { service }: RunningStreams,
  apiKey: string,
  {
    maxReconnectAttempts = 0,
    channelOptions,
    more = [],
  }: Pick<LaserstreamConfig, "maxReconnectAttempts" | "channelOptions"> & {
    /** Accounts that the filter includes beside the first one. */
    readonly more?: readonly string[];
  } = {},
) {
  if (!client) throw new Error("expected the package helius-laserstream");
  const seen = Array.of<SubscribePreprocessedUpdate>();
  const errors = Array.of<string>();
  const include = [encodeBase58(accountOf(1)), ...more];
  const request = {
    transactions: {
      mine: { vote: false, accountInclude: include, accountExclude: [], accountRequired: [] },
    },
  };
  const config = {
    apiKey,
    endpoint: `http://${service.address}`,
    maxReconnectAttempts,
    ...(channelOptions && { channelOptions }),
  };
  const handle = await client.subscribePreprocessed(
    config,
    request,
    (update) => void seen.push(update),
    (error) => void errors.push(error.message),
  );
  closing({ close: () => handle.cancel() });
  return { seen, errors, handle };
}

describe.skipIf(!client)("helius-laserstream", () => {
  it("receives transactions and decodes every field", async () => {
    const running = await runningStreams();
    const { seen, errors, handle } = await subscribed(running, "alice");
    await inForce(running, 1);
    const made = v0TransactionOf([accountOf(1), accountOf(2)], accountOf(9));
    running.send(slotOf(120n, [batchOf([transactionOf([accountOf(3)]), made])]));
    const own = () => seen.filter(({ transaction }) => transaction?.slot === "120");
    await until(() => own().length === 1, "the transaction");
    const [update] = own();
    expect(update?.filters).toEqual(["mine"]);
    const info = update?.transaction?.transaction;
    expect(Buffer.from(info?.signature ?? [])).toEqual(Buffer.from(made.signature));
    expect(info?.isVote).toBe(false);
    const message = info?.transaction?.message;
    const hex = (bytes: Uint8Array | undefined) => Buffer.from(bytes ?? []).toString("hex");
    expect(message).toMatchObject({
      versioned: true,
      header: { numRequiredSignatures: 1, numReadonlySignedAccounts: 0 },
    });
    expect(message?.accountKeys?.map(hex)).toEqual([accountOf(1), accountOf(2)].map(hex));
    expect(
      message?.addressTableLookups?.map((lookup: { accountKey: Uint8Array }) =>
        hex(lookup.accountKey),
      ),
    ).toEqual([hex(accountOf(9))]);
    expect(errors).toEqual([]);
    handle.cancel();
    await until(() => running.service.status().ends.get("client") === 1, "the end");
  });

  it.each(["gzip", "zstd"] as const)(
    "receives transactions if it compresses with %s",
    async (name) => {
      const running = await runningStreams("accountsMax: 3000");
      const more = Array.from({ length: 2500 }, (_, i) => {
        const account = Buffer.alloc(32, 255);
        account.writeUInt32LE(i * 7919);
        return encodeBase58(account);
      });
      const channelOptions = {
        "grpc.default_compression_algorithm": client?.CompressionAlgorithms[name],
      };
      const { seen, errors } = await subscribed(running, "alice", { channelOptions, more });
      await until(() => running.service.status().filters.accounts === 2501, "the filter");
      await inForce(running, 1);
      running.send(slotOf(120n, [batchOf([transactionOf([accountOf(1)])])]));
      await until(() => seen.some(({ transaction }) => transaction?.slot === "120"), "it");
      expect(errors).toEqual([]);
    },
  );

  it("is refused with an unknown key", async () => {
    const running = await runningStreams();
    await subscribed(running, "mallory", { maxReconnectAttempts: 1 }).catch(() => undefined);
    await until(() => (running.service.status().refusals.get("UNAUTHENTICATED") ?? 0) > 0, "it");
    expect(running.service.status().accounts).toEqual([]);
  });
});
