// Actions of accounts on destinations, and valid proofs.

import { describe, expect, it } from "vitest";
import { parseAddressRange, parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { listenerReachedBy } from "../../../src/core/addresses/own-addresses.ts";
import { endpoint, Harness, hour, minute, one, other, second } from "./harness.ts";

const token0 = "0".repeat(32);

describe("recovered shreds", () => {
  it("are a choice of the account, which reaches the relay at once and is stored", async () => {
    const harness = await Harness.open({ canRecover: true });
    const { id } = await harness.proved();
    harness.notifications = 0;
    const chosen = () => harness.destinations.active("here").map(({ recovered }) => recovered);
    expect(chosen()).toEqual([false]);
    await harness.destinations.update("a_1", id, { recovered: true });
    expect(chosen()).toEqual([true]);
    expect(harness.store.rows.get(id)?.recovered).toBe(true);
    await harness.destinations.update("a_1", id, { recovered: true });
    expect(harness.notifications).toBe(1);
    await harness.start({ canRecover: true });
    expect(chosen()).toEqual([true]);
    // A service that stops recovering shreds keeps the choice.
    await harness.start({ canRecover: false });
    expect(chosen()).toEqual([false]);
    await harness.destinations.update("a_1", id, { recovered: false });
    const foreign = harness.destinations.update("a_2", id, { recovered: false });
    await expect(foreign).rejects.toMatchObject({ reason: "destination_unknown" });
  });

  it("are refused by a service that does not recover them", async () => {
    const harness = await Harness.open({ canRecover: false });
    const { id } = await harness.proved();
    const refused = {
      reason: "destination_refused",
      message: expect.stringContaining("relay.deshred: true"),
    };
    const choices = { recovered: true };
    const adding = harness.destinations.add(one, "here", "5.6.7.8:9002", choices);
    await expect(adding).rejects.toMatchObject(refused);
    await expect(harness.destinations.update("a_1", id, choices)).rejects.toMatchObject(refused);
    expect(harness.destinations.ofAccount("a_1").length).toBe(1);
  });
});

describe("adding", () => {
  it("creates an unverified destination, and sends three challenges within 10 s", async () => {
    const harness = await Harness.open();
    const start = harness.nowMs;
    const added = await harness.destinations.add(one, "here", endpoint);
    expect(added).toEqual({
      id: expect.stringMatching(/^d_[0-9a-f]{12}$/),
      accountId: "a_1",
      accountName: "one",
      region: "here",
      address: endpoint,
      createdMs: start,
      state: "unproved",
      provedMs: null,
      provedBy: null,
      proofEndsMs: null,
      pausedMs: null,
      pauseReason: null,
      recovered: false,
    });
    expect(harness.store.rows.get(added.id)).toEqual(added);
    expect(harness.destinations.ofAccount("a_1")).toEqual([added]);
    await harness.clock.advance(hour);
    expect(harness.sentSeconds(start)).toEqual([0, 2, 10]);
    expect(new Set(harness.sent.map(({ token }) => token)).size).toBe(1);
    expect(new Set(harness.sent.map(({ address }) => address))).toEqual(new Set([endpoint]));
    expect(harness.active()).toEqual([]);
    expect(harness.notifications).toBe(0);
    expect(harness.clock.pending).toBe(0);
  });

  it.each([
    ["nowhere", /expected an address and port/],
    ["5.6.7.8", /expected an address and port/],
    ["5.6.7.8:0", /port 1 to 65535/],
    ["5.6.7.8:65536", /port 1 to 65535/],
    ["5.6.7.8:7", /port 7 is reserved for system services/],
    ["5.6.7.8:1023", /system services/],
    ["0.0.0.0:9001", /class unspecified/],
    ["[::]:9001", /class unspecified/],
    ["127.0.0.1:9001", /class loopback/],
    ["[::ffff:127.0.0.1]:9001", /class loopback/],
    ["[::ffff:10.0.0.1]:9001", /class private/],
    ["10.1.2.3:9001", /class private/],
    ["169.254.169.254:9001", /class link-local/],
    ["[fe80::1]:9001", /class link-local/],
    ["224.0.0.1:9001", /class multicast/],
    ["[ff02::1]:9001", /class multicast/],
    ["255.255.255.255:9001", /class broadcast/],
    ["5.6.7.8:11211", /port 11211 belongs to a well-known service/],
    ["[::10.0.0.1]:9001", /it maps to an IPv4 address/],
    ["[::ffff:0:10.0.0.1]:9001", /it maps to an IPv4 address/],
    ["[64:ff9b::5.6.7.8]:9001", /it maps to an IPv4 address/],
    ["[2002:506:708::1]:9001", /it maps to an IPv4 address/],
    ["6.6.6.6:9001", /the operator denies this address range/],
    ["[::ffff:6.6.6.6]:9001", /the operator denies this address range/],
    ["[2606:bad::1]:9001", /the operator denies this address range/],
    ["9.9.9.9:20000", /it is an address of this machine/],
  ])("refuses %s", async (address, message) => {
    const harness = await Harness.open({
      denied: ["6.6.0.0/16", "2606:bad::/32"].map(parseAddressRange),
    });
    harness.own = (candidate) =>
      listenerReachedBy(candidate, [parseEndpoint("0.0.0.0:20000")], ["9.9.9.9"]) !== undefined;
    const adding = harness.destinations.add(one, "here", address);
    await expect(adding).rejects.toMatchObject({
      reason: "address_invalid",
      message: expect.stringMatching(message),
    });
    expect(harness.store.rows.size).toBe(0);
    expect(harness.sent).toEqual([]);
  });

  it("accepts private addresses if the operator allows them, but no reserved ones", async () => {
    const harness = await Harness.open({ allowPrivate: true });
    await harness.destinations.add(one, "here", "127.0.0.1:9001");
    const adding = harness.destinations.add(one, "here", "0.0.0.0:9001");
    await expect(adding).rejects.toMatchObject({ reason: "address_invalid" });
  });

  it("rejects another region, a configured destination, a third one, and an address in use", async () => {
    const harness = await Harness.open({ fixed: new Set(["7.7.7.7:9001"]) });
    await harness.destinations.add(one, "there", endpoint);
    await harness.destinations.add(one, "here", "[2606::1]:9001");
    const refusals: [typeof one, string, string, RegExp][] = [
      [other, "elsewhere", "5.6.7.9:9001", /expected one of here, there; got "elsewhere"/],
      [other, "here", "7.7.7.7:9001", /destination of the operator's configuration/],
      [one, "here", "5.6.7.9:9001", /maximum number of destinations, 2/],
      [other, "here", endpoint, /belongs to another destination/],
      [other, "here", `[::ffff:5.6.7.8]:9001`, /5\.6\.7\.8:9001 belongs to another destination/],
      [other, "here", "[2606:0:0::0001]:9001", /\[2606::1\]:9001 belongs to another destination/],
      [one, "there", endpoint, /belongs to another destination/],
    ];
    for (const [account, region, address, message] of refusals) {
      await expect(harness.destinations.add(account, region, address)).rejects.toMatchObject({
        reason: "destination_refused",
        message: expect.stringMatching(message),
      });
    }
    expect(harness.store.rows.size).toBe(2);
    await harness.destinations.add(other, "here", "5.6.7.8:9002");
  });

  it("counts addresses of the account's proxies, in the store too", async () => {
    const harness = await Harness.open({ perAccountMax: 2 });
    harness.leases = 1;
    const add = (port: number) => harness.destinations.add(one, "here", `5.6.7.8:${port}`);
    const requests = await Promise.allSettled([add(9001), add(9002)]);
    expect(requests.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    const message =
      "the account already has the maximum number of destinations, 2; addresses of its ShredStream proxies " +
      "count too, at present 1: stop a proxy or remove a destination";
    await expect(add(9003)).rejects.toMatchObject({ reason: "destination_refused", message });
    harness.leases = 0;
    await add(9003);
  });

  it("lets the store decide which was first, and sends no challenge for the second", async () => {
    const harness = await Harness.open({ perAccountMax: 1 });
    const requests = await Promise.allSettled([
      harness.destinations.add(one, "here", endpoint),
      harness.destinations.add(other, "here", endpoint),
      harness.destinations.add(one, "here", "5.6.7.9:9001"),
    ]);
    expect(requests.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "rejected"]);
    expect(harness.sent.length).toBe(1);
  });

  it("fails and sends nothing if it cannot be stored", async () => {
    const harness = await Harness.open();
    harness.store.isDown = true;
    const adding = harness.destinations.add(one, "here", endpoint);
    await expect(adding).rejects.toMatchObject({ reason: "store_failed" });
    expect(harness.destinations.ofAccount("a_1")).toEqual([]);
    expect(harness.sent).toEqual([]);
  });
});

describe("an unverified address", () => {
  it("is available to another account after ten minutes, a verified one never", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(other, "here", endpoint);
    const wanted = () => harness.destinations.add(one, "here", endpoint);
    await harness.clock.advance(10 * minute);
    await expect(wanted()).rejects.toThrow("belongs to another destination");
    await harness.clock.advance(1);
    expect((await wanted()).accountId).toBe("a_1");
    expect(harness.store.rows.has(id)).toBe(false);
    await harness.destinations.prove(
      "a_1",
      harness.destinations.ofAccount("a_1")[0]?.id ?? "",
      harness.lastToken,
    );
    await harness.clock.advance(48 * hour);
    await expect(harness.destinations.add(other, "here", endpoint)).rejects.toThrow(
      "belongs to another destination",
    );
  });

  it("gets no challenge while the operator pauses it", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    await harness.destinations.pause(id);
    const sent = harness.sent.length;
    await expect(harness.destinations.challenge("a_1", id)).rejects.toThrow(
      "the operator has paused",
    );
    await harness.clock.advance(hour);
    expect(harness.sent.length).toBe(sent);
  });
});

describe("a proof", () => {
  it("is the returned datagram, or its beginning, from that address: shreds start immediately", async () => {
    for (const cut of [24, 64]) {
      const harness = await Harness.open();
      const { id } = await harness.destinations.add(one, "here", endpoint);
      harness.destinations.answer(endpoint, harness.lastDatagram.subarray(0, cut));
      await harness.settle();
      expect(harness.state(id)).toMatchObject({
        state: "active",
        provedMs: harness.nowMs,
        provedBy: "datagram",
        proofEndsMs: harness.nowMs + 24 * hour,
      });
      expect(harness.store.rows.get(id)).toEqual(harness.state(id));
      expect(harness.destinations.active("here")).toMatchObject([
        { accountId: "a_1", address: endpoint },
      ]);
      expect(harness.destinations.active("there")).toEqual([]);
      expect(harness.notifications).toBe(1);
      await harness.clock.advance(hour);
      expect(harness.sent.length).toBe(1); // no more challenges
    }
  });

  it("may be a call with the token", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    const proved = await harness.destinations.prove("a_1", id, harness.lastToken.toUpperCase());
    expect(proved).toMatchObject({ id, state: "active", provedBy: "call" });
    expect(harness.active()).toEqual([endpoint]);
  });

  it("is durable before it counts", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    let open = () => {};
    harness.store.gate = new Promise((resolve) => {
      open = resolve;
    });
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.settle();
    expect(harness.state(id)?.state).toBe("unproved");
    expect(harness.active()).toEqual([]);
    open();
    await harness.settle();
    expect(harness.active()).toEqual([endpoint]);
  });

  it("that could not be stored may be repeated", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    harness.store.isDown = true;
    const { lastToken } = harness;
    await expect(harness.destinations.prove("a_1", id, lastToken)).rejects.toMatchObject({
      reason: "store_failed",
    });
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.settle();
    expect(harness.active()).toEqual([]);
    harness.store.isDown = false;
    await harness.destinations.prove("a_1", id, lastToken);
    expect(harness.active()).toEqual([endpoint]);
  });

  it("that a datagram gave is stored as soon as the store works again", async () => {
    const harness = await Harness.open();
    await harness.destinations.add(one, "here", endpoint);
    harness.store.isDown = true;
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.clock.advance(12_000);
    expect(harness.active()).toEqual([]);
    harness.store.isDown = false;
    await harness.clock.advance(5_000);
    await harness.settle();
    expect(harness.active()).toEqual([endpoint]);
  });

  it("is invalid from another address or port, or with another destination's token", async () => {
    const harness = await Harness.open();
    const mine = await harness.destinations.add(one, "here", endpoint);
    const { lastDatagram, lastToken } = harness;
    const theirs = await harness.destinations.add(other, "here", "5.6.7.9:9001");
    for (const from of ["5.6.7.8:9002", "5.6.7.9:9001", "[2606::1]:9001", "garbage", ""]) {
      harness.destinations.answer(from, lastDatagram);
    }
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.settle();
    await expect(harness.destinations.prove("a_2", theirs.id, lastToken)).rejects.toMatchObject({
      reason: "proof_refused",
    });
    await expect(
      harness.destinations.prove("a_1", mine.id, harness.lastToken),
    ).rejects.toMatchObject({
      reason: "proof_refused",
    });
    expect(harness.active()).toEqual([]);
  });

  it("is invalid with a used, old or replaced token", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    const used = harness.lastToken;
    const refused = (token: string) =>
      expect(harness.destinations.prove("a_1", id, token)).rejects.toMatchObject({
        reason: "proof_refused",
      });
    await harness.destinations.prove("a_1", id, used);
    await refused(used);
    await harness.destinations.challenge("a_1", id);
    await refused(used);
    const replaced = harness.lastToken;
    await harness.clock.advance(11 * second);
    await harness.destinations.challenge("a_1", id);
    await refused(replaced);
    const old = harness.lastToken;
    await harness.clock.advance(10 * minute);
    await refused(old);
    harness.destinations.answer(endpoint, harness.lastDatagram);
    await harness.settle();
    expect(harness.state(id)?.provedBy).toBe("call");
  });

  it("is ignored while the first one is still being stored", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    const { lastToken } = harness;
    const requests = await Promise.allSettled([
      harness.destinations.prove("a_1", id, lastToken),
      harness.destinations.prove("a_1", id, lastToken),
    ]);
    expect(requests.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  });

  it("may be wrong ten times; forged datagrams do not count", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    const forged = Uint8Array.from(harness.lastDatagram).fill(9, 8, 24);
    for (let i = 0; i < 50; i++) harness.destinations.answer(endpoint, forged);
    const prove = (token: string) => harness.destinations.prove("a_1", id, token);
    for (let i = 0; i < 9; i++) {
      await expect(prove(token0)).rejects.toMatchObject({ reason: "proof_refused" });
    }
    await expect(prove("abc")).rejects.toMatchObject({ reason: "proof_refused" });
    await expect(prove(token0)).rejects.toMatchObject({ reason: "proof_refused" });
    await expect(prove(harness.lastToken)).rejects.toThrow(/no challenge is open/);
    await harness.clock.advance(20 * second);
    expect(harness.sent.length).toBe(1); // the closed round is over
    await harness.destinations.challenge("a_1", id);
    await prove(harness.lastToken);
  });
});

describe("another account's destination", () => {
  it("is unknown to every method", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    for (const refused of [
      harness.destinations.remove("a_2", id),
      harness.destinations.challenge("a_2", id),
      harness.destinations.prove("a_2", id, harness.lastToken),
      harness.destinations.remove("a_1", "d_none"),
    ]) {
      await expect(refused).rejects.toMatchObject({ reason: "destination_unknown" });
    }
    expect(harness.destinations.ofAccount("a_2")).toEqual([]);
    expect(harness.destinations.ofAccount("a_1").length).toBe(1);
    expect(harness.active()).toEqual([]);
  });
});

describe("requested challenges", () => {
  it("have no effect during a round, and are limited to six rounds per hour", async () => {
    const harness = await Harness.open();
    const { id } = await harness.destinations.add(one, "here", endpoint);
    await harness.destinations.challenge("a_1", id);
    await harness.clock.advance(9 * second);
    await harness.destinations.challenge("a_1", id);
    await harness.clock.advance(second);
    expect(harness.sent.length).toBe(3);
    for (let round = 2; round <= 6; round++) {
      await harness.destinations.challenge("a_1", id);
      await harness.clock.advance(10 * second);
      expect(harness.sent.length).toBe(3 * round);
    }
    const repeated = harness.destinations.challenge("a_1", id);
    await expect(repeated).rejects.toMatchObject({
      reason: "rate_limited",
      details: { retryAfterSeconds: 3540 },
    });
    await harness.destinations.remove("a_1", id);
    await expect(harness.destinations.add(other, "here", endpoint)).rejects.toMatchObject({
      reason: "rate_limited",
    });
    expect(harness.sent.length).toBe(18);
    await harness.clock.advance(hour);
    await harness.destinations.add(other, "here", endpoint);
  });
});
