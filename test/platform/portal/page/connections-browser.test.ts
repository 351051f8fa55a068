// Connections over QUIC in the portal: a real Chromium and a real QUIC client of the complete sandbox.

import { describe, expect, it } from "vitest";
import { newEcdsaCredentials } from "../../../../src/core/quic/certificate.ts";
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
      expect(await page.getByText("QUIC by key").count()).toBe(0);

      for (const view of ["transactions", "operator"]) {
        const client = await QuicClient.open(sandbox.quicAddresses[0] ?? "", {
          credentials: newEcdsaCredentials(key),
          protocol: "shredway-tpu",
        });
        client.send(new Uint8Array(0));
        expect(readResponse(await client.request(new Uint8Array(5))).status).toBe(400);
        await page.evaluate(`location.hash = "#/${view}"`);
        const rows = page.getByRole("table", { name: "QUIC connections" }).locator("tbody tr");
        // At the end: accepted, rejected, rate limited, dropped.
        await expect
          .poll(async () => (await rows.allTextContents()).join("\n"))
          .toMatch(/^127\.0\.0\.1.*shredway-tpu.*0101$/m);
        const keys = page.getByRole("table", { name: "QUIC by key" }).locator("tbody tr");
        expect(await keys.count()).toBe(1);
        expect(await accessibilityViolations(page)).toEqual([]);
        expect(await scrollsSideways(page)).toBe(false);
        await client.close();
        await page.getByText("No open connections.").waitFor();
      }
      expect(complaints.found).toEqual([]);
    });
  });
});
