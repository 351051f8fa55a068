// The end of the hub: the relay may be closed right after it.

import { expect, it } from "vitest";
import { StreamHub } from "../../../src/relay/streams/stream-hub.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

it("reads nothing after its end, even if a wake-up of the relay comes late", () => {
  let wakeUp = (): void => {};
  const calls: string[] = [];
  const losses = { byFilter: () => 0n, entries: () => 0n, events: () => 0n };
  const clock = new ManualClock();
  const hub = new StreamHub({
    streams: {
      publish: () => calls.push("publish"),
      drain: () => calls.push("drain") > 0,
      lost: 0,
      losses: () => losses,
      grantReplay: () => undefined,
      onMessages: (listener) => {
        wakeUp = listener;
      },
    },
    limits: { filters: 8, ids: 16, accounts: 8 },
    hasHistory: true,
    clock,
    log: { error: () => undefined },
  });
  wakeUp();
  expect(calls).toEqual(["drain"]);
  const attachment = hub.attach({
    tier: "tier-1",
    wantsEntries: false,
    onTransaction: () => {},
    onEntries: () => {},
    onEvent: () => {},
    onLoss: () => {},
    flush: () => false,
  });
  hub.close();
  wakeUp();
  attachment.detach();
  clock.move(1000);
  expect(calls).toEqual(["drain"]);
});
