// Output of the page's build: small, complete, self-contained, and compatible with a strict
// content security policy.

import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../../../support/temporary-folder.ts";

const build = fileURLToPath(
  new URL("../../../../src/platform/portal/page/build.mjs", import.meta.url),
);
/** About 55,000 today, including 24,000 of uPlot. */
const gzipBytesMax = 64_000;

interface Entry {
  readonly path: string;
  readonly file: string;
  readonly gzip: string;
  readonly type: string;
  readonly etag: string;
  readonly isImmutable: boolean;
}

function built(folder: string): readonly Entry[] {
  execFileSync(process.execPath, [build, folder]);
  const { files }: { files: readonly Entry[] } = JSON.parse(
    readFileSync(join(folder, "manifest.json"), "utf8"),
  );
  return files;
}

describe("the built page", () => {
  it("matches its manifest and is small", () => {
    const folder = temporaryFolder();
    const files = built(folder);
    expect(
      files.map(({ path, isImmutable }) => [path.replace(/-[0-9a-f]{16}/, ""), isImmutable]),
    ).toEqual([
      ["/portal/", false],
      ["/portal/app.js", true],
      ["/portal/style.css", true],
      ["/portal/icon.svg", false],
    ]);
    let gzipBytes = 0;
    for (const { file, gzip, etag } of files) {
      const bytes = readFileSync(join(folder, file));
      const zipped = readFileSync(join(folder, gzip));
      gzipBytes += zipped.length;
      expect(gunzipSync(zipped).equals(bytes)).toBe(true);
      expect(etag).toBe(`"${createHash("sha256").update(bytes).digest("hex").slice(0, 16)}"`);
    }
    expect(gzipBytes).toBeLessThan(gzipBytesMax);
    expect(readdirSync(folder)).toHaveLength(files.length * 2 + 1);
  });

  it("has no inline code and no address of another origin", () => {
    const folder = temporaryFolder();
    const files = built(folder);
    const texts = files.map(({ file }) => readFileSync(join(folder, file), "utf8"));
    const html = texts[0] ?? "";
    expect(html).not.toMatch(/<style|style=|<script>|\son\w+=/);
    for (const [, address] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
      expect(files.map(({ path }) => path)).toContain(address);
    }
    const addresses = texts.flatMap((text) => text.match(/https?:\/\/[^\s"'`)]+/g) ?? []);
    const namespaces = /^http:\/\/www\.w3\.org\//;
    expect(addresses.filter((address) => !namespaces.test(address))).toEqual([]);
    expect(texts.filter((text) => /\b(eval|Function)\(/.test(text))).toEqual([]);
  });

  it("is the same after another build, which removes old files", () => {
    const folder = temporaryFolder();
    const first = built(folder);
    execFileSync("touch", [join(folder, "app-0123456789abcdef.js")]);
    expect(built(folder)).toEqual(first);
    expect(readdirSync(folder)).not.toContain("app-0123456789abcdef.js");
  });
});
