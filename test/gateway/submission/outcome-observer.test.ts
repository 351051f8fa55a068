// The outcome observer's questions to the node, on a pipeline.

import { expect, it } from "vitest";
import { Harness } from "./harness.ts";

it("asks no more about a transaction whose call was refused during a question", async () => {
  const harness = new Harness();
  harness.store.failShare = 1;
  harness.store.writeMs = 3_000;
  harness.leaders = { slot: 4n, current: "bad", next: "B" };
  const facts = harness.facts();
  const asked: string[] = [];
  const answers: (() => void)[] = [];
  harness.signatureStatuses = (signatures) => {
    asked.push(...signatures);
    return new Promise((resolve) => {
      answers.push(() => resolve(signatures.map(() => null)));
    });
  };
  const call = harness.pipeline
    .submit(harness.request(facts, { mevProtect: true })) // held, so that nothing has left
    .catch((error: unknown) => String(error));
  await harness.clock.advance(4_000);
  expect(await call).toContain("was not sent");
  expect(asked).toEqual([facts.signature]);
  expect(harness.pipeline.snapshot().open).toBe(0);
  harness.store.failShare = 0;
  harness.store.writeMs = 0;
  harness.leaders = { slot: 4n, current: "A", next: "B" };
  await harness.clock.advance(1_000); // the store is tried once a second
  const other = harness.facts();
  expect(await harness.submit(other)).toBe("accepted"); // the timer runs on
  for (let i = 0; i < 60; i++) {
    for (const answer of answers.splice(0)) answer();
    await harness.clock.advance(1_000);
  }
  expect(asked.filter((signature) => signature === facts.signature)).toHaveLength(1);
  expect(asked.filter((signature) => signature === other.signature).length).toBeGreaterThan(10);
});
