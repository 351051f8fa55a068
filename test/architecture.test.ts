// The table of allowed imports. Fails when a file reaches into a layer above it, or does what its
// layer must not do. A new folder needs a row here: that is the moment to decide its layer.

import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { importsOf, includesOf, type SourceFile, sourceFiles } from "./support/source-tree.ts";

/** A file imports from its own folder and from lower layers only, and from what `besides` lists. */
const layers = ["core", "rule", "adapter", "service", "entry"] as const;
type Layer = (typeof layers)[number];

const folderLayers: Readonly<Record<string, Layer>> = {
  core: "core",
  // Rules: no I/O, no clock of their own.
  shred: "rule",
  leaders: "rule",
  replay: "rule",
  race: "rule",
  "json-rpc": "rule",
  transactions: "rule",
  submission: "rule",
  nonces: "rule",
  tracker: "rule",
  tips: "rule",
  tiers: "rule",
  accounts: "rule",
  // Adapters: each owns one way to the outside.
  captures: "adapter",
  "data-plane": "adapter",
  http: "adapter",
  net: "adapter",
  gateway: "adapter",
  routes: "adapter",
  solana: "adapter",
  store: "adapter",
  tpu: "adapter",
  portal: "adapter",
  metrics: "adapter",
  // Put together from adapters that are handed in.
  doctor: "service",
  sandbox: "service",
  service: "service",
  cli: "entry",
  // For programs of callers: nothing in here imports it, and it imports nothing in here.
  client: "entry",
  "main.ts": "entry",
  "main-gateway.ts": "entry",
  "main-partners.ts": "entry",
  "main-portal.ts": "entry",
  "main-routes.ts": "entry",
  "main-shreds.ts": "entry",
  "main-sandbox.ts": "entry",
  "index.ts": "entry",
};

/** Imports inside a layer, folder by folder; everything else inside a layer is refused. */
const besides: Readonly<Record<string, readonly string[]>> = {
  race: ["leaders", "shred"],
  submission: ["nonces", "leaders", "transactions"],
  nonces: ["transactions"],
  tracker: ["leaders"],
  tips: ["accounts", "transactions"],
  tiers: ["accounts", "tips"],
  gateway: ["http"],
  metrics: ["data-plane", "http"],
  net: ["data-plane"],
  portal: ["data-plane", "gateway", "http"],
  routes: ["tpu"],
  store: ["data-plane"],
  tpu: ["net"],
  sandbox: ["service"],
  cli: ["main.ts", "main-sandbox.ts"],
  "main.ts": ["main-gateway.ts"],
  "main-gateway.ts": ["main-partners.ts", "main-portal.ts", "main-routes.ts", "main-shreds.ts"],
  "main-sandbox.ts": ["main.ts"],
};

/** Packages and Node parts that only these places may use. */
const onlyIn: Readonly<Record<string, readonly string[]>> = {
  "node-gyp-build": ["src/data-plane/native.ts"],
  "uWebSockets.js": ["src/http/server.ts"],
  litesvm: ["src/sandbox/chain/svm.ts"],
  "litesvm/dist/internal.js": ["src/sandbox/chain/svm.ts"],
  "@solana/kit": [],
  "@solana/web3.js": ["src/solana/"],
  "better-sqlite3": ["src/store/"],
  pg: ["src/store/"],
  undici: ["src/routes/", "src/solana/"],
  "@matrixai/quic": ["src/tpu/quiche.ts"],
  "@matrixai/quic/dist/native/quiche.js": ["src/tpu/quiche.ts"],
  "prom-client": ["src/metrics/"],
  pino: ["src/core/log.ts"],
  yaml: ["src/core/config"],
  zod: ["src/core/config"],
  "@scure/base": ["src/core/primitives.ts"],
};

/** What rules must not import: anything that reaches outside or tells the time. */
const ioModules =
  /^node:(fs|net|dgram|http|https|http2|tls|dns|child_process|worker_threads|cluster|timers|perf_hooks|os)\b/;

/** Words that read a clock, wait, or throw dice. */
const impureWords =
  /\b(Date\.now|new Date\(\)|Math\.random|set(Timeout|Interval|Immediate)\(|performance\.now|process\.hrtime|crypto\.random|randomBytes)/;

function folderOf(path: string): string {
  return path.split("/")[1] ?? "";
}

function layerOf(folder: string): Layer | undefined {
  return Object.hasOwn(folderLayers, folder) ? folderLayers[folder] : undefined;
}

function stripComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
}

/** Breaches of the layers by one file. Exported rules are checked on planted files below, too. */
function layerBreaches({ path, text }: SourceFile): string[] {
  const folder = folderOf(path);
  const layer = layerOf(folder);
  if (!layer) return [`${path}: the folder ${folder} has no layer in test/architecture.test.ts`];
  return importsOf(text)
    .filter((name) => name.startsWith("."))
    .flatMap((name) => {
      const imported = folderOf(join(dirname(path), name));
      const importedLayer = layerOf(imported);
      const isBelow = importedLayer && layers.indexOf(importedLayer) < layers.indexOf(layer);
      const isAllowed = imported === folder || isBelow || besides[folder]?.includes(imported);
      return isAllowed ? [] : [`${path}: ${folder} (${layer}) must not import ${name}`];
    });
}

function packageBreaches({ path, text }: SourceFile): string[] {
  return importsOf(text).flatMap((name) => {
    const places = Object.hasOwn(onlyIn, name) ? onlyIn[name] : undefined;
    if (!places || places.some((place) => path.startsWith(place))) return [];
    return [`${path}: ${name} belongs to ${places.join(", ")}`];
  });
}

function ruleBreaches({ path, text }: SourceFile): string[] {
  const layer = layerOf(folderOf(path));
  const mayReadClock = layer !== "rule" && layer !== "core";
  if (mayReadClock || path === "src/core/clock.ts") return [];
  const words = impureWords.exec(stripComments(text))?.[0];
  const found = words === undefined ? [] : [`${path}: ${words} outside src/core/clock.ts`];
  if (layer === "rule") {
    const modules = importsOf(text).filter((name) => ioModules.test(name));
    found.push(...modules.map((name) => `${path}: a rule must not import ${name}`));
  }
  return found;
}

/** Folders of native/ and what each may include besides itself. Only downwards. */
const nativeIncludes: Readonly<Record<string, readonly string[]>> = {
  crypto: [],
  net: [],
  shred: ["crypto"],
  transaction: ["crypto"],
  deshred: ["shred", "crypto", "transaction"],
  relay: ["net", "shred", "crypto", "transaction", "deshred"],
  verify: ["net", "crypto", "transaction"],
  addon: ["relay", "verify", "net", "shred", "crypto", "transaction", "deshred"],
};

const socketCalls =
  /(?<![\w.>])(?:::)?(socket|bind|connect|listen|accept4?|send|sendto|sendmsg|sendmmsg|recv|recvfrom|recvmsg|recvmmsg|setsockopt|getsockopt|ppoll|epoll_wait)\((?!\))/;
const clockCalls = /\b(clock_gettime|clock_ns|gettimeofday|std::chrono)\b/;
const clockReaders = ["native/relay/worker.cc", "native/relay/deshred_thread.cc"];

function nativeBreaches({ path, text }: SourceFile): string[] {
  const folder = folderOf(path);
  const allowed = Object.hasOwn(nativeIncludes, folder) ? nativeIncludes[folder] : undefined;
  if (!allowed) return [`${path}: the folder ${folder} has no row in test/architecture.test.ts`];
  const found = includesOf(text).flatMap((name) => {
    if (/^(napi|node_api|js_native_api|uv|v8)\b/.test(name)) {
      return folder === "addon" ? [] : [`${path}: only addon includes ${name}`];
    }
    const included = name.includes("/") ? (name.split("/")[0] ?? "") : folder;
    const isOurs = Object.hasOwn(nativeIncludes, included);
    return !isOurs || included === folder || allowed.includes(included)
      ? []
      : [`${path}: ${folder} must not include ${name}`];
  });
  const code = stripComments(text);
  const call = folder === "net" ? undefined : socketCalls.exec(code)?.[1];
  if (call !== undefined && path.endsWith(".cc")) found.push(`${path}: only net calls ${call}()`);
  const clock = clockCalls.exec(code)?.[1];
  if (clock !== undefined && folder !== "net" && !clockReaders.includes(path)) {
    found.push(`${path}: only the threads' loops read the clock, here ${clock}`);
  }
  return found;
}

const typeScript = sourceFiles("src", [".ts", ".tsx"]);
const nativeFiles = sourceFiles("native", [".cc", ".h"]);
const nativeCore = nativeFiles.filter(({ path }) => !/^native\/(test|fuzz)\//.test(path));
/** It runs in browsers, too. */
function clientBreaches({ path, text }: SourceFile): string[] {
  if (!path.startsWith("src/client/")) return [];
  // A field named "from" looks like an import, too: its name would have a line break.
  const found = importsOf(text).filter(
    (name) => !name.includes("\n") && !/^\.\/[\w-]+\.ts$/.test(name),
  );
  const words = stripComments(text).match(/\b(process|Buffer|require)\b[.(]/g) ?? [];
  return [...found, ...words].map((name) => `${path}: the client must not use ${name}`);
}

const everything = [
  ...typeScript,
  ...nativeFiles,
  ...sourceFiles("test", [".ts"]),
  ...sourceFiles("bench", [".ts", ".mjs", ".cc", ".h", ".c"]),
  ...sourceFiles("examples", [".mjs", ".sh", ".c", ".py", ".rs"]),
];

describe("TypeScript", () => {
  it("imports downwards only", () => {
    expect(typeScript.length).toBeGreaterThan(10);
    expect(typeScript.flatMap(layerBreaches)).toEqual([]);
  });

  it("uses the addon, the web server, the chain client and the database in one place each", () => {
    expect(typeScript.flatMap(packageBreaches)).toEqual([]);
  });

  it("keeps the client of callers apart from everything else", () => {
    expect(typeScript.flatMap(clientBreaches)).toEqual([]);
    const planted = (text: string) => clientBreaches({ path: "src/client/a.ts", text });
    expect(planted('import { x } from "../core/errors.ts";').length).toBe(1);
    expect(planted('import "node:fs"; process.exit();').length).toBe(2);
    expect(planted('import { x } from "./types.ts";')).toEqual([]);
  });

  it("keeps rules free of I/O, clocks and chance", () => {
    expect(typeScript.flatMap(ruleBreaches)).toEqual([]);
  });

  it("fails on a file that breaks a rule", () => {
    const planted = (path: string, text: string): SourceFile => ({ path, text });
    const breaches = [
      planted("src/core/a.ts", 'import { x } from "../shred/parse-shred.ts";'),
      planted("src/shred/a.ts", 'import type { x } from "../data-plane/relay.ts";'),
      planted("src/leaders/a.ts", 'export * from "../shred/parse-shred.ts";'),
      planted("src/captures/a.ts", 'const x = await import("../data-plane/relay.ts");'),
      planted("src/service/a.ts", 'import "../main.ts";'),
      planted("src/novel/a.ts", ""),
    ];
    expect(breaches.flatMap(layerBreaches).length).toBe(breaches.length);
    const allowed = planted("src/cli/a.ts", 'import { x } from "../main.ts"; import "./b.ts";');
    expect(layerBreaches(allowed)).toEqual([]);
    const addon = planted("src/cli/a.ts", 'require("node-gyp-build")(root);');
    expect(packageBreaches(addon)).toEqual([
      "src/cli/a.ts: node-gyp-build belongs to src/data-plane/native.ts",
    ]);
    const impure = planted("src/tips/a.ts", 'import "node:fs";\nconst now = Date.now();');
    expect(ruleBreaches(impure).length).toBe(2);
    expect(ruleBreaches(planted("src/tips/a.ts", "// not Date.now()"))).toEqual([]);
  });
});

describe("native", () => {
  it("includes downwards only, and only addon knows Node-API", () => {
    expect(nativeCore.length).toBeGreaterThan(10);
    expect(nativeCore.flatMap(nativeBreaches)).toEqual([]);
  });

  it("fails on a file that breaks a rule", () => {
    const planted = (path: string, text: string) => nativeBreaches({ path, text });
    expect(planted("native/shred/a.cc", '#include "relay/relay.h"').length).toBe(1);
    expect(planted("native/net/a.h", '#include "shred/wire.h"').length).toBe(1);
    expect(planted("native/relay/a.cc", '#include "addon/addon.h"\n#include <napi.h>').length).toBe(
      2,
    );
    expect(planted("native/relay/a.cc", "  int n = sendmmsg(fd, m, 1, 0);").length).toBe(1);
    expect(planted("native/shred/a.cc", "clock_gettime(CLOCK_REALTIME, &t);").length).toBe(1);
    expect(planted("native/addon/a.cc", '#include <napi.h>\n#include "relay/relay.h"')).toEqual([]);
    expect(planted("native/novel/a.cc", "").length).toBe(1);
  });
});

describe("every file", () => {
  it("has at most 500 lines", () => {
    const long = everything.filter(({ text }) => text.split("\n").length > 501);
    expect(long.map(({ path }) => path)).toEqual([]);
  });

  it("begins by saying what it is for", () => {
    const silent = [...typeScript, ...nativeCore].filter(({ path, text }) => {
      const hasHeader =
        path.endsWith(".cc") && nativeFiles.some((file) => file.path === path.replace(/cc$/, "h"));
      return !hasHeader && !/^(#!.*\n)?\/\/ \S/.test(text);
    });
    expect(silent.map(({ path }) => path)).toEqual([]);
  });

  it("leaves no work marked for later", () => {
    const mark = new RegExp(
      `\\b(${["TO", "FIX"].map((word) => word + (word === "TO" ? "DO" : "ME")).join("|")})\\b`,
    );
    expect(everything.filter(({ text }) => mark.test(text)).map(({ path }) => path)).toEqual([]);
  });
});
