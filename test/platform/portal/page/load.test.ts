// The page with the feed of a large service in a real Chromium: 1,000 destinations, 64 slots, a
// day of tips. A simulated server sends known messages. The tests count changes of the document
// and do not measure time.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, Page, WebSocketRoute } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type {
  CoverageView,
  FanOutView,
  HistogramView,
  LiveMessage,
  ServiceView,
  SessionView,
  TipPoint,
} from "../../../../src/platform/portal/types.ts";
import { closing } from "../../../support/closing.ts";
import { chromiumPath, openChromium, overflowing } from "../../../support/processes/chromium.ts";

const build = fileURLToPath(
  new URL("../../../../src/platform/portal/page/build.mjs", import.meta.url),
);
const origin = "http://portal.test";
const startMs = Date.parse("2026-11-21T12:00:00Z");

const session: SessionView = {
  account: "large",
  key: {
    id: "k_1",
    hint: "sw_1",
    label: "",
    scopes: ["operate", "shreds"],
    requestsPerSecond: 50,
    burst: 100,
  },
  isOperator: true,
  feedRefusal: null,
  endsAt: "2026-11-22T12:00:00Z",
};

const service: ServiceView = {
  version: "0.1.0",
  time: "2026-11-21T12:00:00Z",
  startedAt: "2026-11-21T11:00:00Z",
  region: "frankfurt",
  node: null,
  slot: 5000,
  leader: null,
  deliveryRegions: [],
  destinationsMax: 2,
  gatewayUrl: null,
  tipAddresses: ["96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5"],
  minimumTipLamports: 10_000,
  senderAddresses: ["192.0.2.1"],
  warnings: [],
};

const receiveToSend: HistogramView = {
  count: 40,
  p50Ns: 30_000,
  p90Ns: 60_000,
  p99Ns: 90_000,
  maxNs: 95_000,
  buckets: [
    { upToNs: 40_000, count: 30 },
    { upToNs: 60_000, count: 8 },
    { upToNs: 95_000, count: 2 },
  ],
};

function coverage(first: number, length = 64): CoverageView {
  const slots = Array.from({ length }, (_, i) => ({
    slot: first + i,
    data: 500,
    code: 500,
    dataShare: 1,
    share: i % 8 === 0 ? 0.9 : 1,
    firstSeenMs: startMs,
    spanMs: 380,
  }));
  return { slots, receiveToSend };
}

/** `busy` destinations have another rate than before. */
function fanOut(busy: number, turn: number): FanOutView {
  const destinations = Array.from({ length: 1000 }, (_, i) => ({
    name: `account-${i}`,
    address: `192.0.2.1:${10_000 + i}`,
    tier: "tier-1",
    sentPerSecond: i < busy ? 3000 + turn : 3000,
    failed: 0,
    icmp: 0,
  }));
  return { sentPerSecond: 3_000_000, destinations };
}

function tipPoint(i: number): TipPoint {
  const time = new Date(startMs - (95 - i) * 900_000).toISOString();
  return {
    time,
    p25: 10_000,
    p50: 25_000 + i,
    p75: 1e5,
    p95: 1e6,
    p99: 9e6,
    count: 400,
    isStale: false,
  };
}

const changes = `
  window.changes = 0;
  new MutationObserver((records) => (window.changes += records.length)).observe(
    document.querySelector("main"),
    { subtree: true, childList: true, attributes: true, characterData: true },
  );`;

/** Counts drawings of a coverage chart and records the texts on all charts. */
const canvasCalls = `
  window.draws = 0;
  window.labels = [];
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  Object.assign(CanvasRenderingContext2D.prototype, {
    clearRect(...where) {
      if (this.canvas === document.querySelector(".frame canvas")) window.draws++;
      return clearRect.apply(this, where);
    },
    fillText(text, ...where) {
      window.labels.push(text);
      return fillText.apply(this, [text, ...where]);
    },
  });`;

/**
 * Columns of the first chart by colour: runs of one colour, at least 3 pixels wide, close to the
 * bottom.
 */
const columnColours = `(() => {
  const canvas = document.querySelector(".frame canvas");
  const over = document.querySelector(".frame .u-over");
  if (!canvas || !over) return {};
  const row = over.offsetTop + over.offsetHeight - 4;
  const { data } = canvas.getContext("2d").getImageData(over.offsetLeft, row, over.offsetWidth, 1);
  const colourAt = (x) => data[x * 4 + 3] === 255 ? data.slice(x * 4, x * 4 + 3).join(" ") : "";
  const counts = {};
  for (let from = 0, to = 0; from < over.offsetWidth; from = to) {
    for (to = from; to < over.offsetWidth && colourAt(to) === colourAt(from); to++);
    const colour = colourAt(from);
    if (colour !== "" && to - from >= 3) counts[colour] = (counts[colour] ?? 0) + 1;
  }
  return counts;
})()`;
const light = { column: "47 143 136", partial: "185 122 22" };
const dark = { column: "59 167 158", partial: "217 154 53" };

describe.skipIf(!chromiumPath)("the page of a large service", () => {
  const folder = mkdtempSync(join(tmpdir(), "shredway-"));
  let browser: Browser;

  beforeAll(async () => {
    execFileSync(process.execPath, [build, folder]);
    browser = await openChromium();
  });

  afterAll(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Opens the page with its feed; `send` sends messages as the service would. */
  async function opened(hash: string): Promise<[page: Page, tell: (message: LiveMessage) => void]> {
    const page = closing(await browser.newPage({ viewport: { width: 1280, height: 860 } }));
    const { files }: { files: readonly Record<"path" | "file" | "type", string>[] } = JSON.parse(
      readFileSync(join(folder, "manifest.json"), "utf8"),
    );
    await page.route(`${origin}/**`, async (route) => {
      const { pathname } = new URL(route.request().url());
      const file = files.find(({ path }) => path === pathname);
      if (!file) return route.fulfill({ json: session });
      return route.fulfill({ path: join(folder, file.file), contentType: file.type });
    });
    const connected = new Promise<WebSocketRoute>((resolve) => {
      void page.routeWebSocket(/\/portal\/live$/, resolve);
    });
    await page.goto(`${origin}/portal/#/${hash}`);
    const feed = await connected;
    const tell = (message: LiveMessage) => feed.send(JSON.stringify(message));
    tell({ topic: "service", value: service });
    return [page, tell];
  }

  /** Sends a slot and waits until the page shows it. */
  async function shown(page: Page, tell: (message: LiveMessage) => void, slot: number) {
    tell({ topic: "service", value: { ...service, slot } });
    await page.locator("header .place", { hasText: `slot ${slot}` }).waitFor();
  }

  it("changes only the rows with changed data", async () => {
    const [page, tell] = await opened("operator");
    tell({ topic: "fanOut", value: fanOut(0, 0) });
    await page.locator("tr", { hasText: "account-999" }).waitFor();
    await shown(page, tell, 5001);
    await page.evaluate(changes);
    tell({ topic: "fanOut", value: fanOut(3, 1) });
    await shown(page, tell, 5002);
    const rows = page.locator("tr", { hasText: "3,001" });
    await rows.first().waitFor();
    expect(await rows.count()).toBe(3);
    // Three rates, times and the slot change; a thousand rows do not.
    expect(await page.evaluate<number>("window.changes")).toBeLessThan(40);
  });

  it("shows a burst of messages once", async () => {
    const [page, tell] = await opened("feed");
    tell({ topic: "coverage", value: coverage(4000) });
    await page.getByText("56 of 64 slots complete").waitFor();
    await shown(page, tell, 5001);
    await page.evaluate(canvasCalls);
    for (let first = 4001; first <= 4100; first++) {
      tell({ topic: "coverage", value: coverage(first) });
      await page.evaluate("0"); // so that each arrives separately
    }
    await shown(page, tell, 5002);
    await page.getByRole("slider", { name: /^Coverage/ }).focus();
    await page.keyboard.press("End");
    await page.locator(".readout-text", { hasText: /^Slot 4163:/ }).waitFor();
    const draws = await page.evaluate<number>("window.draws");
    expect(draws).toBeGreaterThan(0);
    // One drawing per second, even if the test is slow.
    expect(draws).toBeLessThan(25);
    expect(await page.evaluate(columnColours)).toEqual({ [light.column]: 56, [light.partial]: 8 });
    const latency = page.getByRole("slider", { name: /^Latency/ });
    expect(await latency.getAttribute("max")).toBe("2"); // three bars
  });

  it("redraws charts when the colours change", async () => {
    const [page, tell] = await opened("feed");
    tell({ topic: "coverage", value: coverage(4000) });
    await page.getByText("56 of 64 slots complete").waitFor();
    const has = async ({ column, partial }: typeof light) => {
      const wanted = JSON.stringify({ [partial]: 8, [column]: 56 });
      await page.waitForFunction(`JSON.stringify(${columnColours}) === '${wanted}'`);
    };
    await has(light);
    await page.emulateMedia({ colorScheme: "dark" });
    await has(dark);
    await page.emulateMedia({ colorScheme: "dark", media: "print" });
    await has(light);
    await page.emulateMedia({ colorScheme: "dark", media: "screen" });
    await has(dark);
    await page.getByRole("button", { name: /^Colours: system setting/ }).click();
    await has(light);
  });

  it.each(["", "dark"])(
    "prints dark text on white paper without controls; chosen colours: '%s'",
    async (theme) => {
      const [page, tell] = await opened("feed");
      await page.emulateMedia({ colorScheme: "dark", media: "print" });
      await page.setViewportSize({ width: 794, height: 1123 }); // A4
      await page.evaluate(`document.documentElement.dataset.theme = "${theme}"`);
      tell({ topic: "coverage", value: coverage(4000) });
      await page.getByText("56 of 64 slots complete").waitFor();
      const style = (selector: string, name: string) =>
        page.evaluate(`getComputedStyle(document.querySelector("${selector}")).${name}`);
      expect(await style("h1", "color")).toBe("rgb(21, 25, 28)");
      expect(await style("html", "backgroundColor")).toBe("rgba(0, 0, 0, 0)");
      expect(await style(".top", "position")).toBe("static");
      await expect.poll(() => page.getByRole("navigation").isVisible()).toBe(false);
      expect(await page.locator("button:visible").count()).toBe(0);
    },
  );

  it("draws incomplete data at the start", async () => {
    const [page, tell] = await opened("feed");
    const errors: string[] = [];
    page.on("pageerror", ({ message }) => errors.push(message));
    tell({ topic: "coverage", value: coverage(4000, 0) });
    await page.getByText("No slot length is known yet.").waitFor();
    await page.waitForFunction(`JSON.stringify(${columnColours}) === "{}"`);
    tell({ topic: "coverage", value: coverage(4000, 2) });
    await page.getByText("1 of 2 slots complete").waitFor();
    const wanted = JSON.stringify({ [light.partial]: 1, [light.column]: 1 });
    await page.waitForFunction(`JSON.stringify(${columnColours}) === '${wanted}'`);
    await page.evaluate(canvasCalls);
    await page.evaluate(`location.hash = "#/tips"`);
    tell({ topic: "tips", value: { now: tipPoint(95), history: [tipPoint(94), tipPoint(95)] } });
    await page.getByRole("slider", { name: /^Percentiles of landed tips/ }).waitFor();
    await page.waitForFunction(`window.labels.includes("p99")`);
    expect(errors).toEqual([]);
  });

  it("labels tips by hours in UTC, round amounts and the names of the lines", async () => {
    const [page, tell] = await opened("tips");
    await page.evaluate(canvasCalls);
    const history = Array.from({ length: 96 }, (_, i) => tipPoint(i));
    tell({ topic: "tips", value: { now: tipPoint(95), history } });
    await page.waitForFunction(`window.labels.includes("p99")`);
    const labels = await page.evaluate<string[]>("window.labels");
    const hours = labels.filter((label) => label.includes(":"));
    expect(hours.length).toBeGreaterThan(3);
    expect(hours.filter((label) => !/^\d\d:00$/.test(label))).toEqual([]);
    expect(labels).toEqual(expect.arrayContaining(["0.00001", "0.0001", "0.001", "0.01"]));
    expect(labels).toEqual(expect.arrayContaining(["p25", "p50", "p75", "p95", "p99"]));
  });

  it.each([320, 768, 900, 1440])("fits amounts into their tiles at %i pixels", async (width) => {
    const [page, tell] = await opened("tips");
    await page.setViewportSize({ width, height: 900 });
    const now = { ...tipPoint(95), p25: 10_022, p50: 10_045, p75: 100_680 };
    tell({ topic: "tips", value: { now, history: [now] } });
    await page.getByText("0.00001002\u00a0SOL").waitFor();
    expect(await overflowing(page, ".tiles dd")).toEqual([]);
  });

  it("reads tips point by point by keyboard and pointer", async () => {
    const [page, tell] = await opened("tips");
    const history = Array.from({ length: 96 }, (_, i) => tipPoint(i));
    tell({ topic: "tips", value: { now: tipPoint(95), history } });
    const cursor = page.getByRole("slider", { name: /^Percentiles of landed tips/ });
    await cursor.focus();
    await page.keyboard.press("Home");
    expect(await cursor.getAttribute("aria-valuetext")).toMatch(
      /^2026-11-20 12:15.* p50 0\.000025\s/,
    );
    await page.keyboard.press("ArrowRight");
    expect(await cursor.getAttribute("aria-valuetext")).toMatch(/^2026-11-20 12:30/);
    await cursor.blur();
    const box = await cursor.boundingBox();
    if (!box) throw new Error("expected a chart with a size");
    await page.mouse.move(box.x + box.width - 36, box.y + 60);
    await page.locator(".readout-text", { hasText: /^2026-11-21 12:00/ }).waitFor();
    await page.getByText("Numbers as a table").click();
    await page.locator("tbody tr").nth(95).waitFor();
    expect(await page.locator("tbody tr").count()).toBe(96);
  });

  it("reports an unreadable message and continues", async () => {
    const [page, tell] = await opened("operator");
    // @ts-expect-error: a service of another version
    tell({ topic: "workers", value: [{ load: "high" }] });
    await page.getByText("workers[0].load: expected a number").waitFor();
    tell({ topic: "fanOut", value: fanOut(0, 0) });
    await page.locator("tr", { hasText: "account-999" }).waitFor();
  });
});
