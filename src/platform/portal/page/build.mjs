// Build of the portal's page: bundles TypeScript, JSX and CSS into the files that the server
// delivers.
//
// Run by `npm run compile` and by tests: node src/platform/portal/page/build.mjs [FOLDER]. Names
// of files with unlimited cache time contain a hash of the content. manifest.json lists all files
// with paths, types and ETags. Every file also has a gzip copy, because the server does not
// compress.

import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder =
  process.argv[2] ??
  fileURLToPath(new URL("../../../../dist/platform/portal/page", import.meta.url));

const { outputFiles } = await build({
  entryPoints: { app: join(here, "app.tsx"), style: join(here, "style/style.css") },
  tsconfig: join(here, "tsconfig.json"),
  outdir: folder,
  bundle: true,
  write: false,
  minify: true,
  // The script runs before the first paint, so that the other colour scheme never flashes.
  format: "iife",
  target: ["es2022", "chrome123", "firefox121", "safari17.5"],
  charset: "utf8",
  legalComments: "none",
});

/** Returns the output whose name has this ending. */
function outputOf(ending) {
  const found = outputFiles.find(({ path }) => path.endsWith(ending));
  if (!found) throw new Error(`esbuild wrote no file ${ending}; expected one`);
  return Buffer.from(found.contents);
}

function hashOf(bytes) {
  return createHash("sha256").update(bytes).digest("hex").slice(0, 16);
}

const script = outputOf(".js");
const style = outputOf(".css");
const scriptName = `app-${hashOf(script)}.js`;
const styleName = `style-${hashOf(style)}.css`;
const html = readFileSync(join(here, "index.html"), "utf8")
  .replace("/portal/app.js", `/portal/${scriptName}`)
  .replace("/portal/style.css", `/portal/${styleName}`);

const pages = [
  {
    path: "/portal/",
    file: "index.html",
    type: "text/html; charset=utf-8",
    bytes: Buffer.from(html),
  },
  {
    path: `/portal/${scriptName}`,
    file: scriptName,
    type: "text/javascript; charset=utf-8",
    bytes: script,
  },
  { path: `/portal/${styleName}`, file: styleName, type: "text/css; charset=utf-8", bytes: style },
  {
    path: "/portal/icon.svg",
    file: "icon.svg",
    type: "image/svg+xml",
    bytes: readFileSync(join(here, "icon.svg")),
  },
];

mkdirSync(folder, { recursive: true });
/** Leaves up-to-date files untouched: a running service may be reading them. */
function writeFile(name, bytes) {
  const path = join(folder, name);
  if (existsSync(path) && readFileSync(path).equals(bytes)) return;
  writeFileSync(`${path}.${process.pid}`, bytes);
  renameSync(`${path}.${process.pid}`, path);
}

const files = pages.map(({ path, file, type, bytes }) => {
  const hash = hashOf(bytes);
  const gzip = `${file}.gz`;
  writeFile(file, bytes);
  writeFile(gzip, gzipSync(bytes, { level: 9 }));
  return { path, file, gzip, type, etag: `"${hash}"`, isImmutable: file.includes(hash) };
});
writeFile("manifest.json", Buffer.from(`${JSON.stringify({ files }, null, 2)}\n`));
const wanted = new Set(["manifest.json", ...files.flatMap(({ file, gzip }) => [file, gzip])]);
for (const name of readdirSync(folder)) {
  if (!wanted.has(name)) rmSync(join(folder, name), { force: true });
}
