// Connections over QUIC and WebSockets in the portal: a real Chromium and real clients of the complete sandbox.

import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { newEcdsaCredentials } from "../../../../src/core/quic/certificate.ts";
import { closing } from "../../../support/closing.ts";
import {
  accessibilityViolations,
  chromiumPath,
  openPortalView,
  scrollsSideways,
} from "../../../support/processes/chromium.ts";
import { runningSandbox } from "../../../support/processes/sandbox.ts";
import { QuicClient } from "../../../support/quic/quic-client.ts";
import { describeQuic } from "../../../support/quic/quic-server.ts";
import { readResponse } from "../../../support/quic/response-frames.ts";

describe.skipIf(!chromiumPath)("the portal in Chromium", () => {
  describeQuic("with a client over QUIC", () => {
    it("shows its key and its connection to the customer and to the operator", async () => {
      const sandbox = await runningSandbox("127.0.0.1:0", { quic: "127.0.0.1:0" });
      const key = new URL(sandbox.gatewayUrl).searchParams.get("api-key") ?? "";
      const { page, complaints } = await openPortalView(sandbox.gatewayUrl, "transactions");
      await page.getByRole("table", { name: "Newest submissions" }).waitFor();
      expect(await page.getByText("Connections by key").count()).toBe(0);

      for (const view of ["transactions", "operator"]) {
        const client = await QuicClient.open(sandbox.quicAddresses[0] ?? "", {
          credentials: newEcdsaCredentials(key),
          protocol: "shredway-tpu",
        });
        client.send(new Uint8Array(0));
        expect(readResponse(await client.request(new Uint8Array(5))).status).toBe(400);
        await page.evaluate(`location.hash = "#/${view}"`);
        const rows = page
          .getByRole("table", { name: "Submission connections" })
          .locator("tbody tr");
        // At the end: accepted, rejected, rate limited, dropped.
        await expect
          .poll(async () => (await rows.allTextContents()).join("\n"))
          .toMatch(/^127\.0\.0\.1.*QUICshredway-tpu.*0101$/m);
        const keys = page.getByRole("table", { name: "Connections by key" }).locator("tbody tr");
        expect(await keys.count()).toBe(1);
        expect(await accessibilityViolations(page)).toEqual([]);
        expect(await scrollsSideways(page)).toBe(false);
        await client.close();
        await page.getByText("No open connections.").waitFor();
      }
      expect(complaints.found).toEqual([]);
    });
  });

  it("shows an open WebSocket on /relayb in the same table", async () => {
    const sandbox = await runningSandbox();
    const url = new URL(sandbox.gatewayUrl);
    const key = url.searchParams.get("api-key") ?? "";
    const { page, complaints } = await openPortalView(sandbox.gatewayUrl, "transactions");
    const socket = new WebSocket(`ws://${url.host}/relayb?api-key=${key}`);
    closing({ close: () => socket.terminate() });
    await once(socket, "open");
    socket.send(new Uint8Array(5));
    const rows = page.getByRole("table", { name: "Submission connections" }).locator("tbody tr");
    await expect
      .poll(async () => (await rows.allTextContents()).join("\n"))
      .toMatch(/^127\.0\.0\.1.*WebSocket\/relayb.*0100$/m);
    socket.close();
    await page.getByText("No open connections.").waitFor();
    expect(complaints.found).toEqual([]);
  });
});
