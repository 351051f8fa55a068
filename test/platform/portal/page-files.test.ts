// The page's files over real HTTP: exactly the files of the manifest, with security headers.

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, gzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { createLogger } from "../../../src/core/log.ts";
import { PageFiles } from "../../../src/platform/portal/page-files.ts";
import { RawClient, serve } from "../../gateway/http/clients.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { PortalHarness } from "./harness.ts";

const script = "console.log('a page');".repeat(50);
const files = [
  {
    path: "/portal",
    file: "index.html",
    type: "text/html; charset=utf-8",
    etag: '"1"',
    isImmutable: false,
  },
  {
    path: "/portal/app-12.js",
    file: "app-12.js",
    gzip: "app-12.js.gz",
    type: "text/javascript; charset=utf-8",
    etag: '"2"',
    isImmutable: true,
  },
];

function folderWith(manifest: unknown): string {
  const folder = join(temporaryFolder(), "page");
  mkdirSync(folder);
  writeFileSync(join(folder, "index.html"), "<!doctype html><title>p</title>");
  writeFileSync(join(folder, "app-12.js"), script);
  writeFileSync(join(folder, "app-12.js.gz"), gzipSync(script));
  writeFileSync(join(folder, "secret.txt"), "secret");
  writeFileSync(join(folder, "..", "outside.txt"), "secret");
  writeFileSync(join(folder, "manifest.json"), JSON.stringify(manifest));
  return folder;
}

const log = createLogger({ level: "silent" });

async function client(manifest: unknown = { files }): Promise<RawClient> {
  const pages = new PageFiles(folderWith(manifest), log);
  return RawClient.open(await serve({ handle: (request) => pages.answer(request) }));
}

async function ask(raw: RawClient, path: string, headers = "", method = "GET"): Promise<string> {
  raw.received = "";
  await raw.write(`${method} ${path} HTTP/1.1\r\nHost: a\r\n${headers}\r\n`);
  const head = await raw.readUntil(/\r\n\r\n/);
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
  const hasBody = method !== "HEAD" && !/^HTTP\/1.1 304/.test(head);
  const begin = head.indexOf("\r\n\r\n") + 4;
  await raw.readUntil(new RegExp(`^[\\s\\S]{${begin + (hasBody ? length : 0)}}`));
  return raw.received;
}

describe("the page's files", () => {
  it("have types, tags and lifetimes, and are compressed for clients that accept it", async () => {
    const raw = await client();
    const page = await ask(raw, "/portal/");
    expect(page).toMatch(/^HTTP\/1.1 200/);
    expect(page).toContain("<!doctype html>");
    expect(page).toContain("content-type: text/html; charset=utf-8");
    expect(page).toContain("cache-control: no-cache");
    for (const header of [
      "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; " +
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'self'; " +
        "frame-ancestors 'none'",
      "x-content-type-options: nosniff",
      "referrer-policy: no-referrer",
      "permissions-policy: camera=()",
      "cross-origin-opener-policy: same-origin",
      "cross-origin-resource-policy: same-origin",
      "cross-origin-embedder-policy: require-corp",
    ]) {
      expect(page.toLowerCase()).toContain(header);
    }
    expect(page).not.toContain("access-control-allow-origin");
    const plain = await ask(raw, "/portal/app-12.js");
    expect(plain).toContain(script);
    expect(plain).toContain("cache-control: public, max-age=31536000, immutable");
    const packed = await ask(raw, "/portal/app-12.js", "Accept-Encoding: br, gzip;q=0.5\r\n");
    expect(packed).toContain("content-encoding: gzip");
    const body = Buffer.from(packed.slice(packed.indexOf("\r\n\r\n") + 4), "latin1");
    expect(gunzipSync(body).toString()).toBe(script);
    const unpacked = await ask(raw, "/portal/app-12.js", "Accept-Encoding: gzip;q=0\r\n");
    expect(unpacked).not.toContain("content-encoding");
    expect(await ask(raw, "/portal/app-12.js", "", "HEAD")).toMatch(/content-length: 1100/i);
  });

  it("are not sent again to clients that have them", async () => {
    const raw = await client();
    for (const tag of ['"2"', 'W/"2"', '"1", "2"', "*"]) {
      const same = await ask(raw, "/portal/app-12.js", `If-None-Match: ${tag}\r\n`);
      expect(same).toMatch(/^HTTP\/1.1 304/);
      expect(same).not.toContain("console");
    }
    const other = await ask(raw, "/portal/app-12.js", 'If-None-Match: "3"\r\n');
    expect(other).toMatch(/^HTTP\/1.1 200/);
  });

  it("are limited to the manifest for every spelling of the path", async () => {
    const raw = await client();
    for (const path of [
      "/portal/secret.txt",
      "/portal/manifest.json",
      "/portal/index.html",
      "/portal/../outside.txt",
      "/portal/%2e%2e/outside.txt",
      "/portal/..%2foutside.txt",
      "/portal/....//outside.txt",
      "/portal//app-12.js",
      "/portal/app-12.js/",
      "/portal/app-12.js%00",
      "/portal/app-12.js.gz",
      "/portal/__proto__",
      "/etc/passwd",
    ]) {
      const answer = await ask(raw, path);
      expect([path, answer.slice(9, 12)]).toEqual([path, "404"]);
      expect(answer).not.toContain("secret");
    }
  });

  it.each([
    ["names a file outside", { files: [{ ...files[0], file: "../outside.txt" }] }],
    ["names a missing file", { files: [{ ...files[0], file: "missing.html" }] }],
    ["has a header with a line break", { files: [{ ...files[0], type: "a\r\nb: c" }] }],
    ["lacks the page", { files: [files[1]] }],
    ["is not a list", { files: 7 }],
  ])("are unavailable if the manifest %s", async (_what, manifest) => {
    const raw = await client(manifest);
    const answer = await ask(raw, "/portal/");
    expect(answer).toMatch(/^HTTP\/1.1 503/);
    expect(answer).toContain("npm run compile");
  });
});

describe("paths of the service", () => {
  it("redirect people to the portal and do not affect programs", async () => {
    const harness = await PortalHarness.open();
    const html = { headers: { accept: "text/html,*/*;q=0.8" } };
    const home = await harness.ask("GET", "/", html);
    expect([home.status, home.header("location")]).toEqual([302, "/portal/"]);
    expect((await harness.ask("GET", "/")).status).toBe(405);
    const bare = await harness.ask("GET", "/portal");
    expect([bare.status, bare.header("location")]).toEqual([308, "/portal/"]);
    for (const [method, path, status] of [
      ["GET", "/portal/api/call", 405],
      ["PUT", "/portal/api/session", 405],
      ["GET", "/portal/live", 426],
      ["GET", "/portalx", 404],
    ] as const) {
      expect((await harness.ask(method, path)).status).toBe(status);
    }
    for (const path of ["/portal", "/portal/", "/portal/none.js", "/portal/api/call"]) {
      const answer = await harness.ask("GET", path);
      expect(answer.header("content-security-policy")).toContain("default-src 'none'");
      expect(answer.header("x-content-type-options")).toBe("nosniff");
    }
    expect((await harness.ask("GET", "/nowhere")).text).toContain("/portal/");
  });

  it("do not redirect if the portal is disabled", async () => {
    const harness = await PortalHarness.open({ portal: { enabled: false } });
    for (const path of ["/portal", "/portal/", "/portal/api/session", "/portal/live"]) {
      expect((await harness.ask("GET", path)).status).toBe(404);
    }
    const html = { headers: { accept: "text/html" } };
    expect((await harness.ask("GET", "/", html)).status).toBe(405);
    expect(harness.gateway.portalUrl).toBeNull();
  });
});
