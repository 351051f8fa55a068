// Decoded streams in the portal: a real Chromium and real gRPC clients of the complete sandbox.

import { describe, expect, it } from "vitest";
import { until } from "../../../support/network/udp-receiver.ts";
import {
  accessibilityViolations,
  chromiumPath,
  openPortalView,
  scrollsSideways,
} from "../../../support/processes/chromium.ts";
import { runningSandbox } from "../../../support/processes/sandbox.ts";
import { metadataOf, subscribeDeshred } from "../../../support/streams/stream-clients.ts";

describe.skipIf(!chromiumPath)("the portal in Chromium", () => {
  it("shows open streams and their ends to the customer and to the operator", async () => {
    const sandbox = await runningSandbox("127.0.0.1:0", { streams: "127.0.0.1:0" });
    const key = new URL(sandbox.gatewayUrl).searchParams.get("api-key") ?? "";
    const { page, complaints } = await openPortalView(sandbox.gatewayUrl, "feed");
    await page.getByText("Coverage").first().waitFor();
    expect(await page.getByText("Decoded streams").count()).toBe(0);
    const filters = { one: { vote: false }, two: { vote: true } };
    for (const view of ["feed", "operator"]) {
      const client = subscribeDeshred(
        sandbox.streamsAddress,
        { deshred_transactions: filters },
        { metadata: metadataOf({ "x-token": key }) },
      );
      await page.evaluate(`location.hash = "#/${view}"`);
      const rows = page.getByRole("table", { name: "Decoded streams" }).locator("tbody tr");
      await expect
        .poll(async () => (await rows.allTextContents()).join("\n"))
        .toMatch(/^127\.0\.0\.1.*deshredtier-1.* ago2[\d.,]+\s\/s.*\s(µs|ms)$/m);
      expect(await accessibilityViolations(page)).toEqual([]);
      expect(await scrollsSideways(page)).toBe(false);
      client.call.cancel();
      await until(() => client.end !== undefined, "the end");
      await page.getByText("No open streams.").waitFor();
      const ended = page.getByRole("table", { name: "Ended streams" }).locator("tbody tr");
      await expect
        .poll(async () => (await ended.allTextContents()).join("\n"))
        .toMatch(/^127\.0\.0\.1.*deshredtier-1.*client$/m);
    }
    expect(complaints.found).toEqual([]);
  });
});
