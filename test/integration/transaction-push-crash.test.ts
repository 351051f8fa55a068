// kill -9 of a service with an open push: the receiver hears nothing more, and the restarted service sends
// nothing until its customer asks for it.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { stringify } from "yaml";
import { ShredwayClient } from "../../src/client/client.ts";
import { systemClock } from "../../src/core/clock.ts";
import { PacedSender } from "../../src/relay/data-plane/paced-sender.ts";
import { closing } from "../support/closing.ts";
import { tipAddress } from "../support/gateway/gateway.ts";
import { freePort, freeUdpPort } from "../support/network/free-ports.ts";
import { until } from "../support/network/udp-receiver.ts";
import { Shredway, shredway } from "../support/processes/shredway.ts";
import { PushReceiver } from "../support/streams/push-run.ts";
import { batchOf, slotOf, transactionOf } from "../support/streams/stream-relay.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

async function start(file: string): Promise<Shredway> {
  const program = Shredway.run("start", "--config", file);
  closing({ close: () => program.kill() });
  await program.printed(/^ready /m);
  return program;
}

it("ends with its service, and begins again on request", { timeout: 300_000 }, async () => {
  const file = join(temporaryFolder(), "shredway.yaml");
  const port = await freePort();
  const listen = `127.0.0.1:${await freeUdpPort()}`;
  const config = {
    http: { listen: `127.0.0.1:${port}`, webSocketListen: [] },
    data: { directory: "data" },
    tips: { addresses: [tipAddress], shredAddresses: [tipAddress] },
    gateway: { warmUpSubmissions: 0 },
    streams: { listen: "127.0.0.1:0", tier: "tier-1" },
    relay: {
      listen,
      shredVersion: 1,
      authentication: "off",
      allowPrivateDestinations: true,
      sources: [{ name: "a", address: "127.0.0.2", tier: "tier-1" }],
    },
  };
  writeFileSync(file, stringify(config));
  const words = ["keys", "create", "--account", "ann", "--scopes", "shreds,stream"];
  const created = await shredway(...words, "--config", file, "--json");
  const { key }: { key: string } = JSON.parse(created.stdout);
  const url = `http://127.0.0.1:${port}/relay?api-key=${key}`;
  const client = new ShredwayClient({ url, timeoutMs: 60_000 });
  const receiver = await PushReceiver.open();
  const feed = closing(PacedSender.open({ to: listen, from: "127.0.0.2:0" }));
  let slot = 110n;
  /** Sends slots until the receiver has a transaction of one of them. */
  const received = async () => {
    const before = receiver.transactions().length;
    await until(() => {
      const packets = slotOf(slot++, [batchOf([transactionOf()])]);
      feed.enqueue(packets, new BigUint64Array(packets.length));
      return receiver.transactions().length > before;
    }, "a transaction");
  };

  const first = await start(file);
  const { id } = await client.addDestination({ region: "frankfurt", address: receiver.address });
  const isActive = async () => (await client.getDestinations())[0]?.state === "active";
  while (!(await isActive())) await systemClock.sleep(20);
  const before = await client.startTransactionPush(id, {}, { leaseSeconds: 600 });
  await received();
  await first.kill();

  const second = await start(file);
  expect(await isActive()).toBe(true);
  expect(await client.getTransactionPushes()).toEqual({ open: [], ended: [] });
  expect(receiver.of("end")).toEqual([]);
  const silent = receiver.datagrams.length;
  const packets = slotOf(slot++, [batchOf([transactionOf()])]);
  feed.enqueue(packets, new BigUint64Array(packets.length));
  const after = await client.startTransactionPush(id, {});
  await until(() => receiver.datagrams.length > silent, "the first heartbeat");
  expect(receiver.datagrams[silent]).toMatchObject({ kind: "heartbeat", sequence: 0n });
  expect(after.streamId).not.toBe(before.streamId);
  await received();
  const ids = receiver.datagrams.slice(silent).map(({ streamId }) => streamId);
  expect(new Set(ids)).toEqual(new Set([after.streamId]));
  second.signal("SIGTERM");
  await until(() => receiver.of("end").length === 1, "the last datagram");
  expect(receiver.of("end")[0]?.text).toBe("closing: the service is shutting down");
  expect((await second.end()).code).toBe(0);
});
