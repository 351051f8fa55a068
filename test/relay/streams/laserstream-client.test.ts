// The stock client helius-laserstream against the running service: SubscribePreprocessed, decoded by its
// own code.

import { createRequire } from "node:module";
import type { SubscribePreprocessedUpdate } from "helius-laserstream";
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

async function subscribed({ service }: RunningStreams, apiKey: string, maxReconnectAttempts = 0) {
  if (!client) throw new Error("expected the package helius-laserstream");
  const seen = Array.of<SubscribePreprocessedUpdate>();
  const errors = Array.of<string>();
  const include = [encodeBase58(accountOf(1))];
  const request = {
    transactions: {
      mine: { vote: false, accountInclude: include, accountExclude: [], accountRequired: [] },
    },
  };
  const config = { apiKey, endpoint: `http://${service.address}`, maxReconnectAttempts };
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

  it("is refused with an unknown key", async () => {
    const running = await runningStreams();
    await subscribed(running, "mallory", 1).catch(() => undefined);
    await until(() => (running.service.status().refusals.get("UNAUTHENTICATED") ?? 0) > 0, "it");
    expect(running.service.status().accounts).toEqual([]);
  });
});
