// Traffic of the bench of streams: every batch fills one FEC set, and a subscriber receives as many
// transactions as the bench expects.

import { expect, it } from "vitest";
import { accountOf, firstSlot, StreamTraffic } from "../../bench/load/stream-traffic.ts";
import { encodeBase58 } from "../../src/core/base58.ts";
import { until } from "../support/network/udp-receiver.ts";
import { runningStreams, subscribeDeshred } from "../support/streams/stream-clients.ts";

it("names accounts in half of its transactions, as it counts them", async () => {
  const traffic = new StreamTraffic();
  const { packets, named } = traffic.make(1);
  expect(packets).toHaveLength(62 * 64);
  expect(named.reduce((sum, count) => sum + count, 0)).toBe(62 * 66);
  const running = await runningStreams("", { leader: traffic.leader, firstSlot });
  const account_include = [5, 6, 7].map((account) => encodeBase58(accountOf(account)));
  const client = subscribeDeshred(running.service.address, {
    deshred_transactions: { some: { account_include, vote: false } },
    slots: { slots: {} },
  });
  await until(() => {
    const { filters, isCurrent } = running.service.status().filters;
    return filters === 1 && isCurrent;
  }, "the filter");
  running.send(packets);
  const expected = (named[5] ?? 0) + (named[6] ?? 0) + (named[7] ?? 0);
  const received = () => client.messages.filter((one) => one.deshred_transaction).length;
  await until(() => received() === expected, "all transactions");
  expect(received()).toBe(expected);
});
