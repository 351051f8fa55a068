// Limits that a reload changes, for streams that are open.

import { describe, expect, it } from "vitest";
import { encodeBase58 } from "../../../src/core/base58.ts";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { until } from "../../support/network/udp-receiver.ts";
import {
  runningStreams,
  subscribeDeshred,
  subscribeEntries,
} from "../../support/streams/stream-clients.ts";
import { accountOf, batchOf, slotOf, transactionOf } from "../../support/streams/stream-relay.ts";
import { inForce } from "../../support/streams/stream-sockets.ts";

function reloaded(section: string) {
  return parseConfig(
    `relay: { shredVersion: 1, authentication: off, sources: [ { name: a, address: 127.0.0.2, tier: tier-1 } ] }
http: { listen: "127.0.0.1:0" }
tips: { addresses: [ "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5" ] }
streams: { listen: "127.0.0.1:0", ${section} }`,
    "a.yaml",
  ).streams;
}

const requestOf = (accounts: number) => ({
  deshred_transactions: {
    mine: {
      account_include: Array.from({ length: accounts }, (_, i) => encodeBase58(accountOf(i))),
    },
  },
});

describe("a reload", () => {
  it("changes the limits of streams that are open", async () => {
    const running = await runningStreams("accountsMax: 2");
    const { service } = running;
    const { call } = subscribeDeshred(service.address, requestOf(2));
    await inForce(running, 1);
    service.apply(reloaded("accountsMax: 4"));
    call.write(requestOf(4));
    await until(() => service.status().filters.accounts === 4, "the new filter");
    service.apply(reloaded("accountsMax: 3"));
    call.write(requestOf(4));
    await until(() => service.status().ends.get("refused") === 1, "the end");
    expect(service.status().refusals).toEqual(new Map([["INVALID_ARGUMENT", 1]]));
  });

  it("changes the queues of streams that are open", async () => {
    const running = await runningStreams("queueBytes: 65536");
    const { service } = running;
    const [slow, fast] = [subscribeEntries(service.address), subscribeEntries(service.address)];
    await inForce(running, 2);
    slow.pause();
    const large = batchOf(Array.from({ length: 1500 }, () => transactionOf()));
    const sendOne = async () => {
      const before = fast.messages.length;
      running.send(slotOf(110n + BigInt(before), [large]));
      await until(() => fast.messages.length > before, "the batch");
    };
    service.apply(reloaded("queueBytes: 67108864"));
    const waiting = () => service.status().accounts[0]?.waitingBytes ?? 0;
    for (let sent = 0; waiting() <= 4 * 65_536; sent++) {
      if (sent === 80) expect.fail("expected bytes that wait");
      await sendOne();
    }
    expect(service.status().ends.get("lagged")).toBe(0);
    service.apply(reloaded("queueBytes: 65536"));
    await sendOne();
    slow.resume();
    await until(() => slow.end !== undefined, "the end");
    expect(slow.end?.details).toMatch(/^lagged: .*; expected at most 65536 bytes$/);
    expect(fast.end).toBeUndefined();
  });
});
