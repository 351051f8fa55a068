// The history of landed tips in the portal: a real Chromium and a complete service.

import type { Page } from "playwright-core";
import { describe, expect, it } from "vitest";
import { quarterMs } from "../../../../src/tips/tip-history.ts";
import {
  accessibilityViolations,
  buildPortal,
  chromiumPath,
  openPortalView,
  scrollsSideways,
} from "../../../support/processes/chromium.ts";
import { PortalHarness } from "../harness.ts";

/** Whether the canvas has a pixel of the colour, by thirds of the width of its plotting area. */
const drawnThirds = `(name) => {
  const canvas = document.querySelector(".uplot canvas");
  const probe = document.createElement("i");
  probe.style.color = "var(--" + name + ")";
  document.querySelector("main").append(probe);
  const wanted = getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3).map(Number);
  probe.remove();
  const { width, height } = canvas;
  // A copy, because the browser complains about reads of the original.
  const copy = Object.assign(document.createElement("canvas"), { width, height });
  const context = copy.getContext("2d", { willReadFrequently: true });
  context.drawImage(canvas, 0, 0);
  const { data } = context.getImageData(0, 0, width, height);
  const found = [false, false, false];
  for (let at = 0; at < data.length; at += 4) {
    const isNear = wanted.every((value, i) => Math.abs(value - data[at + i]) < 40);
    if (!isNear || data[at + 3] < 200) continue;
    const share = ((at / 4) % width) / width;
    found[Math.min(2, Math.floor(((share - 0.1) / 0.85) * 3))] = true;
  }
  return found;
}`;

async function drawn(page: Page, name: string): Promise<boolean[]> {
  return page.evaluate<boolean[]>(`(${drawnThirds})(${JSON.stringify(name)})`);
}

describe.skipIf(!chromiumPath)("the history of tips in Chromium", () => {
  it("shows a day and a week with gaps, in light and dark, by keyboard, and explains an empty one", async () => {
    buildPortal();
    const harness = await PortalHarness.open();
    const { text } = await harness.key("ann");
    const { page, complaints } = await openPortalView(`${harness.origin}/?api-key=${text}`, "tips");
    await page.getByText("No tip has landed in the last 24 hours").waitFor();
    const { history } = harness.gateway.tipFloor;
    const newest = Math.floor(Date.now() / quarterMs);
    // The middle of the week has no values.
    for (let ago = 0; ago < 672; ago++) {
      const isGap = ago > 220 && ago < 450;
      const lamports = BigInt(10_000 + ago * 10);
      const percentiles = {
        p25: lamports,
        p50: 3n * lamports,
        p75: 9n * lamports,
        p95: 30n * lamports,
        p99: 99n * lamports,
      };
      const quarter = newest - ago;
      if (!isGap) history.add({ quarter, timeMs: quarter * quarterMs, count: 5, percentiles });
    }
    const chart = page.getByRole("slider", { name: "Percentiles of landed tips" });
    await chart.waitFor();
    const choice = page.getByRole("group", { name: "Period" });
    expect(await choice.getByRole("button", { pressed: true }).textContent()).toBe("24 hours");
    // The keyboard chooses the week, then moves along the chart.
    await choice.getByRole("button", { name: "24 hours" }).focus();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    expect(await choice.getByRole("button", { pressed: true }).textContent()).toBe("7 days");
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      await expect.poll(() => drawn(page, "p50")).toEqual([true, false, true]);
      expect(await accessibilityViolations(page)).toEqual([]);
    }
    await chart.focus();
    await page.keyboard.press("End");
    await expect
      .poll(() => chart.getAttribute("aria-valuetext"))
      .toMatch(/p25 0\.00001\sSOL.*p99 0\.00099\sSOL \(5 tips\)/);
    await page.keyboard.press("Home");
    await expect.poll(() => chart.getAttribute("aria-valuetext")).toMatch(/p25 0\.0000167/);
    expect(await scrollsSideways(page)).toBe(false);
    expect(complaints.found).toEqual([]);
  });
});
