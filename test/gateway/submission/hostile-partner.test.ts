// A partner that answers in every wrong way while many submissions come: each acknowledged one is sent once
// the partner recovers, and ends once.

import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import { Pipeline } from "../../../src/gateway/submission/pipeline.ts";
import type {
  LandingObservations,
  SubmissionRecord,
  SubmissionStore,
} from "../../../src/gateway/submission/types.ts";
import { closing } from "../../support/closing.ts";
import { accepts, type Behaviour, Partner, routeConfig } from "../../support/gateway/partner.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";

const count = 500;
const tenMegabytes = Buffer.alloc(10 * 1024 * 1024, "x");

const wrongAnswers: readonly Behaviour[] = [
  () => undefined, // it never answers
  (_request, response) => void response.end(tenMegabytes),
  ({ socket }) => {
    const answer = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n{"id":1}\r\n';
    socket.write(answer + answer); // it answers twice
  },
  ({ socket }) => void socket.end("HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{"),
  ({ socket }) => void socket.write("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{}{}{}"),
  ({ socket }) => void socket.resetAndDestroy(),
  accepts,
];

function memoryStore(records: Map<string, SubmissionRecord>): SubmissionStore {
  const put = async (all: readonly SubmissionRecord[]) => {
    for (const record of all) records.set(record.signature, record);
  };
  return {
    put,
    add: async (all) => {
      await put(all);
      return true;
    },
    open: async () => [],
    openNodes: async () => [],
    adopt: async () => [],
    find: async () => [],
    findBundles: async () => [],
    forgetEndedBefore: async () => 0,
  };
}

it("loses no acknowledged submission and ends each once", async () => {
  const partner = await Partner.open();
  closing({ close: () => partner.close() });
  partner.behaviour = (request, response) =>
    wrongAnswers[partner.posts.length % wrongAnswers.length]?.(request, response);
  const config = routeConfig({ kind: "swqos", url: partner.url, timeoutMs: 300, connections: 32 });
  const route = closing(openRoute(config, { clock: systemClock }));
  const records = new Map<string, SubmissionRecord>();
  const observers = new Map<string, Parameters<LandingObservations["watch"]>[1]>();
  const pipeline = new Pipeline(
    {
      clock: systemClock,
      log: { warn: () => {} },
      routes: () => [route],
      policy: () => ({
        denyLeaders: new Set(),
        minimumTipLamports: 0n,
        partners: new Set<string>(),
        partnerUnitLamports: 0n,
      }),
      store: memoryStore(records),
      landings: {
        watch: (signature, listener) => {
          observers.set(Buffer.from(signature).toString("hex"), listener);
          return () => undefined;
        },
      },
      outcomes: null,
      leaders: () => ({ slot: 4n, current: "A", next: "B" }),
      slotNs: () => null,
      inspect: () => {
        throw new Error("nothing is restored");
      },
    },
    { resendMs: 500 },
  );
  closing(pipeline);
  const ends = new Map<string, number>();
  pipeline.subscribe("ann", (signature, { kind }) => {
    if (kind === "landed") ends.set(signature, (ends.get(signature) ?? 0) + 1);
  });

  const acknowledged = new Set<string>();
  const options = {
    swqosOnly: false,
    mevProtect: false,
    revertProtection: false,
    resendsMax: null,
  };
  for (let i = 0; i < count; i++) {
    const facts = fakeFacts(50_000 + i);
    await pipeline
      .submit({
        accountId: "ann",
        method: "sendTransaction",
        transactions: [facts],
        isBundle: false,
        options,
        receivedNs: systemClock.nowNs(),
      })
      .then(
        () => acknowledged.add(facts.signature),
        () => undefined, // the route is down: the caller knows that nothing was accepted
      );
  }
  expect(acknowledged.size).toBeGreaterThan(0);
  expect([...acknowledged].filter((signature) => !records.has(signature))).toEqual([]);

  const delivered = new Set<string>();
  const wires = new Map(
    Array.from({ length: count }, (_, i) => fakeFacts(50_000 + i)).map(({ wire, signature }) => [
      Buffer.from(wire).toString("base64"),
      signature,
    ]),
  );
  partner.behaviour = (request, response) => {
    for (const [, text = ""] of request.body.toString().matchAll(/"([A-Za-z0-9+/=]{100,})"/g)) {
      delivered.add(wires.get(text) ?? "");
    }
    return accepts(request, response);
  };
  await until(
    () => [...acknowledged].every((signature) => delivered.has(signature)),
    "every acknowledged transaction at the partner",
  );
  for (const observe of observers.values()) {
    observe({ slot: 9n, seenNs: systemClock.nowNs(), mayRestart: false });
  }
  await until(
    () => [...acknowledged].every((signature) => records.get(signature)?.state === "landed"),
    "every end in the store",
  );
  expect([...ends.values()].filter((times) => times !== 1)).toEqual([]);
  expect([...acknowledged].filter((signature) => !ends.has(signature))).toEqual([]);
});
