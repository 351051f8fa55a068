// Refusals, hostile parameters and ends of transaction pushes on a complete service with real sockets.

import { describe, expect, it } from "vitest";
import { region } from "../../platform/portal/harness.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { type Customer, PushReceiver, PushRun } from "../../support/streams/push-run.ts";
import { transactionOf } from "../../support/streams/stream-relay.ts";

async function opened() {
  const run = await PushRun.open();
  const ann = await run.customer("ann");
  const receiver = await PushReceiver.open();
  const { id } = await run.destination(ann, receiver);
  return { run, ann, receiver, id };
}

/** The error of a call with any parameters; null: it succeeded. */
async function errorOf({ url }: Customer, method: string, params: unknown): Promise<string | null> {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await fetch(url, { method: "POST", body });
  const { error }: { error?: { message: string; code: number } } = JSON.parse(await answer.text());
  expect(error?.code).not.toBe(-32603); // internal error
  return error?.message ?? null;
}

describe("a push is refused", () => {
  it("to a destination of another account, an unverified one, and one that does not exist", async () => {
    const { run, ann, receiver, id } = await opened();
    const bob = await run.customer("bob");
    await expect(bob.client.startTransactionPush(id, {})).rejects.toThrow(
      `destination_unknown: unknown destination "${id}"`,
    );
    await ann.client.startTransactionPush(id, {});
    await expect(bob.client.startTransactionPush(id, {})).rejects.toThrow("destination_unknown");
    await expect(bob.client.stopTransactionPush(id)).rejects.toThrow(
      `destination_unknown: no push of this account to destination "${id}" is open`,
    );
    expect(await bob.client.getTransactionPushes()).toEqual({ open: [], ended: [] });
    const silent = await PushReceiver.open();
    silent.answersChallenges = false;
    const unverified = await bob.client.addDestination({ region, address: silent.address });
    await expect(bob.client.startTransactionPush(unverified.id, {})).rejects.toThrow(
      `destination_refused: destination ${unverified.id} is unproved; expected an active one: ` +
        "verify it with challengeDestination first",
    );
    run.send([transactionOf()]);
    await until(() => receiver.of("heartbeat").length > 0, "the heartbeat of the open one");
    expect(silent.datagrams).toEqual([]);
  });

  it("without the scope, a key, or a tier", async () => {
    const { run, id } = await opened();
    const shredsOnly = await run.customer("ann", ["submit", "shreds"]);
    for (const method of ["startTransactionPush", "stopTransactionPush", "getTransactionPushes"]) {
      expect(await errorOf(shredsOnly, method, [id, {}])).toMatch(/^scope_missing: .*stream/);
      const anonymous = { ...shredsOnly, url: shredsOnly.url.replace(/\?.*/, "") };
      expect(await errorOf(anonymous, method, [id, {}])).toMatch(/^unauthorized: /);
    }
    const streamOnly = await run.customer("ann", ["stream"]);
    for (const shreds of [false, true]) {
      await expect(streamOnly.client.startTransactionPush(id, {}, { shreds })).rejects.toThrow(
        "scope_missing: startTransactionPush: the option shreds needs a key with the scope shreds",
      );
    }
    const poor = await run.customer("carl", ["shreds", "stream"]);
    const receiver = await PushReceiver.open();
    const { id: own } = await run.destination(poor, receiver);
    await expect(poor.client.startTransactionPush(own, {})).rejects.toThrow(
      "startTransactionPush: the account has no tier; register tips for shreds first",
    );
  });

  it("with hostile parameters, by an error that says what is expected", async () => {
    const { ann, receiver, id } = await opened();
    const key = "1".repeat(32);
    const cases: [unknown, RegExp][] = [
      [[], /^value_invalid: params\[0\]: missing value; expected a string/],
      [[5, {}], /^value_invalid: params\[0\]: invalid value 5; expected a string/],
      [["d_0123456789ab\u0000", {}], /^destination_unknown: /],
      [["x".repeat(10_000), {}], /^destination_unknown: .{1,300}$/],
      [[id], /^value_invalid: startTransactionPush: no push to this destination is open/],
      [[id, null], /^value_invalid: startTransactionPush: no push to this destination is open/],
      [[id, []], /^value_invalid: startTransactionPush: filter: expected an object, got /],
      [[id, "all"], /^value_invalid: startTransactionPush: filter: expected an object, got /],
      [[id, { votes: true }], /: unknown member: expected vote, signature, accounts, got "votes"/],
      [[id, { vote: 1 }], /^value_invalid: startTransactionPush: vote: expected true or false/],
      [[id, { signature: key }], /: signature: expected a signature in base58 \(64 bytes\)/],
      [[id, { accounts: { all: [] } }], /: accounts: unknown member: expected include, exclude/],
      [[id, { accounts: { include: ["0"] } }], /: accounts.include\[0\]: expected a public key/],
      [
        [id, { accounts: { include: Array.from({ length: 300 }, () => 5) } }],
        /: accounts.include\[0\]: expected a public key/,
      ],
      [[id, {}, { leaseSeconds: 0 }], /leaseSeconds: invalid value 0; expected an integer from 1/],
      [[id, {}, { leaseSeconds: 601 }], /leaseSeconds: invalid value 601; .* from 1 to 600/],
      [[id, {}, { leaseSeconds: 1e308 }], /leaseSeconds: invalid value .* from 1 to 600/],
      [[id, {}, 7], /^value_invalid: params\[2\]: invalid value 7; expected an object/],
    ];
    for (const [params, message] of cases) {
      expect(await errorOf(ann, "startTransactionPush", params)).toMatch(message);
    }
    expect(await errorOf(ann, "stopTransactionPush", [id])).toMatch(/^destination_unknown: /);
    expect(await ann.client.getTransactionPushes()).toEqual({ open: [], ended: [] });
    expect(receiver.datagrams).toEqual([]);
  });
});

/** How the last push of the customer ended. */
async function endOf({ run, ann, receiver }: Awaited<ReturnType<typeof opened>>) {
  run.move(1000); // access is checked within a second
  const pushes = () => ann.client.getTransactionPushes();
  const endMs = performance.now() + 60_000;
  while ((await pushes()).open.length > 0) {
    if (performance.now() > endMs) expect.fail("expected the end of the push");
  }
  const [end] = (await pushes()).ended;
  await run.inForce(0);
  const before = receiver.datagrams.filter(({ kind }) => kind !== "end").length;
  run.send([transactionOf()]);
  run.move(5000);
  // A push of the same service, which gets the next slot.
  const other = await PushReceiver.open();
  const bob = await run.customer("bob");
  await bob.client.startTransactionPush((await run.destination(bob, other)).id, {});
  await run.inForce(1);
  run.send([transactionOf()]);
  await until(() => other.transactions().length === 1, "its transaction");
  const after = receiver.datagrams.filter(({ kind }) => kind !== "end").length;
  return { ...end, sentAfter: after - before };
}

describe("a push ends", () => {
  it("when its lease was not renewed, with a datagram that says so", async () => {
    const all = await opened();
    const { run, ann, receiver, id } = all;
    await ann.client.startTransactionPush(id, {}, { leaseSeconds: 300 });
    run.move(200_000);
    await ann.client.startTransactionPush(id, null, { leaseSeconds: 300 });
    run.move(200_000);
    expect((await ann.client.getTransactionPushes()).open).toHaveLength(1);
    run.move(100_000);
    const text = "lease_expired: the push was not renewed in time; call startTransactionPush again";
    expect(await endOf(all)).toMatchObject({
      address: receiver.address,
      reason: "lease_expired",
      text,
      sentAfter: 0,
    });
    await until(() => receiver.of("end").length === 1, "the last datagram");
    expect(receiver.datagrams.at(-1)).toMatchObject({ kind: "end", text });
    const next = await ann.client.startTransactionPush(id, {});
    expect(next.streamId).not.toBe(receiver.datagrams[0]?.streamId);
  });

  it("when the customer stops it", async () => {
    const all = await opened();
    await all.ann.client.startTransactionPush(all.id, {});
    await all.ann.client.stopTransactionPush(all.id);
    expect(await endOf(all)).toMatchObject({ reason: "client", sentAfter: 0 });
    await until(() => all.receiver.of("end").length === 1, "the last datagram");
    await expect(all.ann.client.stopTransactionPush(all.id)).rejects.toThrow("destination_unknown");
  });

  it.each(["removed", "paused by the operator"])(
    "without a further datagram when its destination is %s",
    async (change) => {
      const all = await opened();
      const { run, ann, receiver, id } = all;
      await ann.client.startTransactionPush(id, {});
      await until(() => receiver.of("heartbeat").length > 0, "the first heartbeat");
      if (change === "removed") await ann.client.removeDestination(id);
      else await run.harness.gateway.shreds?.destinations.pause(id);
      expect(await endOf(all)).toMatchObject({
        reason: "destination_inactive",
        text: `destination_inactive: ${id} (${receiver.address}) is not verified and active any more`,
        sentAfter: 0,
      });
      expect(receiver.of("end")).toEqual([]);
    },
  );

  it("when its proof expires", async () => {
    const all = await opened();
    const { run, ann, receiver, id } = all;
    receiver.answersChallenges = false;
    run.move(24 * 3_600_000 - 60_000);
    await ann.client.startTransactionPush(id, {}, { leaseSeconds: 600 });
    run.move(61_000);
    expect(await endOf(all)).toMatchObject({ reason: "destination_inactive" });
  });

  it("when the key is revoked, unless another key of the account has renewed it", async () => {
    const all = await opened();
    const { run, ann, receiver, id } = all;
    const { keys } = run.harness.gateway;
    const other = await run.customer("ann", ["stream"]);
    await ann.client.startTransactionPush(id, {});
    await other.client.startTransactionPush(id, null);
    await keys.revokeKey(ann.keyId, 1n);
    await run.harness.gateway.refreshKeys();
    run.move(1000);
    const view = () => other.client.getTransactionPushes();
    expect((await view()).open).toHaveLength(1);
    await keys.revokeKey(other.keyId, 1n);
    await run.harness.gateway.refreshKeys();
    run.move(1000);
    const third = await run.customer("ann", ["stream"]);
    expect(await endOf({ ...all, ann: third })).toMatchObject({
      reason: "revoked",
      text: "revoked: the API key is not valid any more, or has lost the scope stream",
    });
    await until(() => receiver.of("end").length === 1, "the last datagram");
  });

  it("when the account gets another tier", async () => {
    const all = await opened();
    const { run, ann, id, receiver } = all;
    await ann.client.startTransactionPush(id, {});
    await run.harness.registerTip(ann, 500_000_000n);
    expect(await endOf(all)).toMatchObject({
      reason: "tier_changed",
      text: "tier_changed: the account's tier is tier-2 now; subscribe again",
    });
    await until(() => receiver.of("end").length === 1, "the last datagram");
    expect((await ann.client.startTransactionPush(id, {})).tier).toBe("tier-2");
  });

  it("when the service closes, and says so in its last datagram", async () => {
    const { run, ann, receiver, id } = await opened();
    await ann.client.startTransactionPush(id, {});
    await run.harness.service.close();
    await until(() => receiver.of("end").length === 1, "the last datagram");
    expect(receiver.of("end")[0]?.text).toBe("closing: the service is shutting down");
  });
});

it("the portal shows open pushes and their ends to their account", async () => {
  const { run, ann, receiver, id } = await opened();
  await ann.client.startTransactionPush(id, {});
  const key = await run.harness.key("ann", ["shreds", "stream"]);
  const feed = run.harness.feed(await run.harness.cookie(key));
  const view = await feed.has("streams", ({ streams }) => streams.length === 1);
  const shown = { dialect: "push", address: receiver.address, tier: "tier-1" };
  expect(view.streams).toMatchObject([{ ...shown, filters: 1, leftOut: 0 }]);
  await ann.client.stopTransactionPush(id);
  const later = await feed.has("streams", ({ ended }) => ended.length === 1);
  expect(later.ended).toMatchObject([{ ...shown, reason: "client" }]);
});
