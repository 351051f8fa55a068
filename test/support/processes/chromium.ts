// A real headless Chromium, if one is installed.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import axe from "axe-core";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { closing } from "../closing.ts";

const places = [
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

/** undefined: tests that need one are skipped. */
export const chromiumPath = places.find((place) => existsSync(place));

export async function openChromium(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath ?? "",
    // Root cannot use Chromium's sandbox; this browser opens only pages of this machine.
    args: ["--no-sandbox", "--disable-gpu"],
  });
}

/**
 * Errors of a page: policy violations, console messages, exceptions, and requests to another
 * origin.
 */
export class Complaints {
  readonly found: string[] = [];
  readonly #origin: string;

  constructor(context: BrowserContext, origin: string) {
    this.#origin = origin;
    context.on("page", (page) => this.#watch(page));
  }

  #watch(page: Page): void {
    page.on("pageerror", ({ message }) => this.found.push(`error: ${message}`));
    page.on("console", (message) => {
      const { url } = message.location();
      // A browser logs responses of 400 and more itself; the page receives and shows these.
      const isAnswer = message.text().startsWith("Failed to load resource: the server responded");
      const isOwn = isAnswer && url.startsWith(`${this.#origin}/portal/api/`);
      if (["error", "warning"].includes(message.type()) && !isOwn) {
        this.found.push(`console: ${message.text()}`);
      }
    });
    page.on("request", (request) => {
      const { origin, protocol } = new URL(request.url());
      if (origin !== this.#origin && protocol !== "data:") this.found.push(`request: ${origin}`);
    });
  }
}

const portalBuild = fileURLToPath(
  new URL("../../../src/platform/portal/page/build.mjs", import.meta.url),
);
const portalWaitMs = 60_000;

/** Builds the page from its sources. A service that was opened before may have no page, or an older one. */
export function buildPortal(): void {
  execFileSync(process.execPath, [portalBuild]);
}

/** Builds the portal and opens a view of it, signed in with the key in the gateway's URL. */
export async function openPortalView(
  gatewayUrl: string,
  view: string,
): Promise<{ readonly page: Page; readonly complaints: Complaints }> {
  buildPortal();
  const { origin, searchParams } = new URL(gatewayUrl);
  const browser = closing(await openChromium());
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 } });
  context.setDefaultTimeout(portalWaitMs);
  const complaints = new Complaints(context, origin);
  const page = await context.newPage();
  await page.goto(`${origin}/portal/#/${view}`);
  await page.getByLabel("API key", { exact: true }).fill(searchParams.get("api-key") ?? "");
  await page.getByRole("button", { name: "Sign in" }).click();
  return { page, complaints };
}

const runAxe = `axe.run(document, { preload: false, resultTypes: ["violations"] }).then(({ violations }) =>
  violations.flatMap(({ id, help, nodes }) =>
    nodes.map((node) => id + ": " + help + ": " + node.html.slice(0, 200))))`;

/** Violations of accessibility rules, one line each. */
export async function accessibilityViolations(page: Page): Promise<string[]> {
  await page.evaluate(axe.source);
  return page.evaluate<string[]>(runAxe);
}

/** Whether the page itself must be scrolled horizontally. */
export async function scrollsSideways(page: Page): Promise<boolean> {
  return page.evaluate<boolean>("document.documentElement.scrollWidth > window.innerWidth");
}

/** Clickable elements below `size` in height: names and heights. */
export async function smallTargets(page: Page, size: number): Promise<string[]> {
  return page.evaluate<
    string[]
  >(`[...document.querySelectorAll("button, nav a, input:not([type=range]), select, summary")]
    .filter((each) => each.checkVisibility() && each.getBoundingClientRect().height < ${size})
    .map((each) => each.outerHTML.slice(0, 120) + " " + each.getBoundingClientRect().height)`);
}

/** Elements of the selector whose content is wider than they are. */
export async function overflowing(page: Page, selector: string): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll(${JSON.stringify(selector)})]
    .filter((each) => each.scrollWidth > each.clientWidth + 1)
    .map((each) => each.outerHTML.slice(0, 120))`);
}

/** Choices of lists whose text does not fit beside the arrow. */
export async function clippedChoices(page: Page): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.querySelectorAll("select")].flatMap((list) => {
    const style = getComputedStyle(list);
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = style.font;
    const arrow = 20;
    const room =
      list.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - arrow;
    return [...list.options].filter(({ text }) => pen.measureText(text).width > room)
      .map(({ text }) => text);
  })`);
}
