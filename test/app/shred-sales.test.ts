// Shred sales on a complete service: from a destination's settings to the shreds that it receives.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { databaseFileName } from "../../src/platform/store/data-folder.ts";
import { PortalHarness, region, tier1Lamports } from "../platform/portal/harness.ts";
import { Files } from "../platform/store/files.ts";
import { closing } from "../support/closing.ts";
import { until } from "../support/network/udp-receiver.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

/** A receiver that answers its challenges and stores everything else. */
async function receiver(): Promise<{ readonly address: string; readonly shreds: Buffer[] }> {
  const socket = createSocket("udp4");
  const shreds: Buffer[] = [];
  socket.on("message", (packet, from) => {
    if (packet.length > 64) shreds.push(packet);
    else socket.send(packet, from.port, from.address);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  closing({ close: () => void socket.close() });
  return { address: `127.0.0.1:${socket.address().port}`, shreds };
}

it("dropped registrations are deleted after their time", async () => {
  const directory = temporaryFolder();
  const harness = await PortalHarness.open({ data: { directory } });
  const driver = await new Files().driver({ path: join(directory, databaseFileName) });
  closing(driver);
  const sql = `INSERT INTO registrations (signature, account_id, lamports, slot, registered_ms,
    lifetime, state, settled_ms, reason) VALUES ($1, 'a', 1, 1, 1, $1, 'dropped', 1, 'expired')`;
  await driver.transaction([{ sql, params: [new Uint8Array(64)] }], "durable");
  const count = async () => (await driver.query("SELECT COUNT(*) FROM registrations", []))[0]?.[0];
  expect(await count()).toBe(1n);
  await harness.clock.advance(5 * 60_000);
  await expect.poll(count, { timeout: 20_000 }).toBe(0n);
});

describe("a customer's destination", () => {
  it("receives recovered shreds if its account chose them, from the moment of the choice", async () => {
    const harness = await PortalHarness.open({ relay: { deshred: true } });
    const ann = await harness.key("ann");
    const cookie = await harness.cookie(ann);
    await harness.registerTip(ann, tier1Lamports);
    const [eager, patient] = [await receiver(), await receiver()];
    const add = async (address: string, choices: object) => {
      const added = await harness.call(cookie, "addDestination", [{ region, address, ...choices }]);
      expect(added.json.result).toMatchObject({ address, recovered: "recovered" in choices });
      return String(added.json.result.id);
    };
    await add(eager.address, { recovered: true });
    const patientId = await add(patient.address, {});
    const served = () => harness.service.relay.snapshot().destinations;
    await until(() => served().length === 2, "both in the relay's table");
    expect(await harness.sendSlot(2)).toBe(32);
    await until(() => eager.shreds.length === 64, "the missing half");
    await until(() => patient.shreds.length === 32, "the sent half");
    expect(served().map(({ recoveredSent }) => recoveredSent)).toEqual([32n, 0n]);

    const updated = await harness.call(cookie, "updateDestination", [
      patientId,
      { recovered: true },
    ]);
    expect(updated.json.result).toMatchObject({ id: patientId, recovered: true, state: "active" });
    await harness.sendSlot(2);
    await until(() => patient.shreds.length === 96, "the next set, completed");
    expect(served().map(({ recoveredSent }) => recoveredSent)).toEqual([64n, 32n]);
  });
});
