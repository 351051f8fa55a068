// Attacks on the QUIC ingress of a complete sandbox, with a customer on an open connection.
//
// During each attack every submission of the customer is acknowledged, the process of the connections lives
// in bounded memory, and the relay forwards every shred. Afterwards each transaction has landed once.

import { expect, it } from "vitest";
import { parseEndpoint } from "../../src/core/addresses/addresses.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { until } from "../support/network/udp-receiver.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import {
  type AttackTarget,
  certificateBombs,
  copiedPackets,
  fuzzedCertificates,
  guessedKeys,
  halfOpenHandshakes,
  oneByteFrames,
  presentCertificates,
  resetFlood,
  unfinishedStreams,
} from "../support/quic/attacks.ts";
import { buildInitialFlood, firstPackets, floodInitials } from "../support/quic/initial-flood.ts";
import { describeQuic } from "../support/quic/quic-server.ts";
import { readResponse } from "../support/quic/response-frames.ts";
import {
  expectEachLandedOnce,
  newTransaction,
  SandboxCustomer,
  sandboxKey,
} from "../support/quic/sandbox-customer.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** Below the limit of 512 MiB, beyond which the process would be replaced. */
const memoryBytesMax = 320 * 2 ** 20;

async function metric({ gatewayUrl }: Sandbox, name: string): Promise<number> {
  const text = await (await fetch(new URL("/metrics", gatewayUrl))).text();
  const value = text.split("\n").find((line) => line.startsWith(`${name} `));
  if (value === undefined) throw new Error(`expected the metric ${name}, got none`);
  return Number(value.slice(name.length));
}

/**
 * Stops the chain and compares what the relay sent with what its destinations received. On a busy machine
 * the kernel may drop some shreds with and without an attack, and counts them.
 */
async function expectWholeFeed(sandbox: Sandbox): Promise<void> {
  const { relay } = sandbox.snapshot();
  expect(Number(relay.receiveDrops)).toBeLessThan(Number(relay.received) / 2);
  sandbox.stopTraffic();
  const missing = () => {
    const { relay: now, receivers } = sandbox.snapshot();
    return receivers.map(({ name, seen }) => {
      const sent = now.destinations.find((each) => each.name === name)?.sent ?? -1n;
      return sent - seen.received - seen.receiveDrops;
    });
  };
  await until(() => missing().every((count) => count === 0n), "every sent shred");
  for (const { seen } of sandbox.snapshot().receivers) {
    expect(Number(seen.verdicts.first)).toBeGreaterThan(0);
    expect(seen.verdicts.duplicate).toBe(0n);
  }
}

/** Runs an attack while the customer submits. */
async function withstand<Result>(
  attack: (target: AttackTarget, sandbox: Sandbox) => Promise<Result>,
): Promise<Result> {
  const sandbox = await runningSandbox("127.0.0.1:0", { quic: "127.0.0.1:0" });
  const customer = await SandboxCustomer.connect(sandbox);
  await customer.submit();
  await until(() => sandbox.snapshot().chain.blockHeight > 1n, "blocks");
  const shredsBefore = sandbox.snapshot().relay.received;
  const address = sandbox.quicAddresses[0] ?? "";
  const running = attack({ address, key: sandboxKey(sandbox) }, sandbox);
  await customer.submitDuring(running);
  const result = await running;
  expect(customer.refused).toEqual([]);
  expect(customer.acknowledged.size).toBeGreaterThan(1);
  expect(sandbox.snapshot().relay.received).toBeGreaterThan(shredsBefore);
  expect(await metric(sandbox, "shredway_quic_up")).toBe(1);
  for (const reason of ["exited", "unresponsive", "memory_limit", "invalid_message"]) {
    expect(await metric(sandbox, `shredway_quic_process_ends_total{reason="${reason}"}`)).toBe(0);
  }
  const memory = await metric(sandbox, "shredway_quic_process_memory_bytes");
  expect(memory).toBeLessThan(memoryBytesMax);
  await expectEachLandedOnce(sandbox.gatewayUrl, customer.acknowledged);
  await expectWholeFeed(sandbox);
  return result;
}

describeQuic("the ingress withstands", () => {
  it("100,000 first packets from forged addresses", async () => {
    const program = buildInitialFlood(temporaryFolder());
    const packets = firstPackets(500);
    const totals = await withstand(({ address }) =>
      floodInitials({
        program,
        port: parseEndpoint(address).port,
        count: 100_000,
        packetsPerSecond: 0,
        packets,
      }),
    );
    expect(totals.sent).toBe(100_000);
    expect(totals.answerBytes).toBeLessThan(3 * totals.sentBytes);
  });

  it("handshakes that stop after the retry", async () => {
    const answered = await withstand((target) => halfOpenHandshakes(target, 300));
    expect(answered).toBe(300);
  });

  it("streams that never end", async () => {
    const responses = await withstand((target) =>
      unfinishedStreams(target, { connections: 3, streams: 60 }),
    );
    const bodies = new Set(responses.map((bytes) => readResponse(bytes).body));
    expect([...bodies]).toEqual([
      "value_invalid: stream: expected its end within 750 ms; send each transaction at once",
    ]);
  });

  it("frames of one byte", async () => {
    const frames = { streams: 30, bytes: 60 };
    expect(await withstand((target) => oneByteFrames(target, frames))).toBeGreaterThan(100);
  });

  it("resets without end", async () => {
    const ends = await withstand(async (target) => [
      await resetFlood(target),
      await resetFlood(target),
      await resetFlood(target),
    ]);
    for (const end of ends) expect(end).toMatchObject({ by: "peer", isApp: true, code: 4 });
  });

  it("huge, nested and damaged certificates", async () => {
    const ends = await withstand((target) =>
      presentCertificates(target, [...certificateBombs(target.key), ...fuzzedCertificates(25, 30)]),
    );
    expect(ends.length).toBe(37);
    // Only the certificate of 12 kB with a valid key is accepted, and the chain that begins with one.
    expect(ends.filter(({ by }) => by === "time").length).toBe(2);
  });

  it("guesses of keys", async () => {
    const reasons = await withstand((target) => guessedKeys(target, 40));
    expect(reasons.at(0)).toMatch(/^unauthorized: invalid API key/);
    expect(reasons.at(-1)).toMatch(/^unauthorized: too many invalid API keys/);
  });

  it("copies of a client's packets from 50 other addresses", async () => {
    const responses = await withstand((target, sandbox) => {
      const requests = Array.from({ length: 20 }, () => newTransaction(sandbox));
      return copiedPackets(target, { addresses: 50, requests });
    });
    expect(responses.map((bytes) => readResponse(bytes).status)).toEqual(Array(20).fill(200));
  });
});
