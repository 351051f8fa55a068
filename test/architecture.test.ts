// The table of allowed imports. It fails if a file imports from a layer above it, or uses a facility
// that its layer may not use. A new folder needs a row, here or in folder-imports.ts: the row decides its
// layer.

import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { folderImports } from "./support/source/folder-imports.ts";
import {
  importsOf,
  includesOf,
  type SourceFile,
  sourceFiles,
} from "./support/source/source-tree.ts";

/**
 * The top-level modules in dependency order: a file imports from its own module and from earlier ones.
 * The paths of a packet, a transaction and a tip therefore each read down the tree.
 */
const modules = [
  "core",
  "relay",
  "tips",
  "shreds",
  "gateway",
  "platform",
  "app",
  "sandbox",
  "tools",
] as const;
type Module = (typeof modules)[number];

/**
 * Libraries for clients' programs. The first one also runs in browsers and imports nothing from other modules.
 * The one for Node.js imports it, and core.
 */
const callersLibrary = "client";
const callersLibraryForNode = "src/client/quic/";
/** The commands that use them as a user's program does. */
const callersLibraryUsers: readonly string[] = ["src/tools/send/", "src/tools/land/"];
/**
 * The response types belong to the library, because it must stay free of imports. Modules that write or
 * display responses import these types, and nothing else of the library.
 */
const responseTypes = "src/client/responses.ts";
const responseTypeUsers: readonly string[] = [
  "src/gateway/schema/",
  "src/gateway/methods/",
  "src/gateway/receipts/",
  "src/gateway/endpoints/",
  "src/platform/portal/",
];

/** Rules: no I/O, no clock, no randomness. A folder, or one file. */
const rules: readonly string[] = [
  "src/core/json-rpc/",
  "src/core/transactions/",
  "src/relay/data-plane/parse-shred.ts",
  "src/relay/leaders/",
  "src/tips/",
  "src/shreds/destinations/",
  "src/shreds/registrations/",
  "src/shreds/tiers/",
  "src/gateway/accounts/",
  "src/gateway/submission/",
  "src/gateway/nonces/",
  "src/gateway/tracker/",
];

/** Adapters in the folders of the rules that they serve. */
const adaptersBesideRules: readonly string[] = ["src/shreds/destinations/challenge-socket.ts"];

/** Production never loads the sandbox; only these files start it. */
const sandboxStarters: readonly string[] = [
  "src/tools/sandbox/",
  "src/tools/commands/start.ts",
  "src/tools/commands/land.ts",
];

/** Packages and Node.js modules that only these places may use. */
const onlyIn: Readonly<Record<string, readonly string[]>> = {
  "node-gyp-build": ["src/relay/data-plane/native.ts"],
  "uWebSockets.js": ["src/gateway/http/uws-engine.ts"],
  ws: ["src/gateway/http/node-engine.ts", "src/gateway/http/node-web-socket.ts"],
  litesvm: ["src/sandbox/chain/svm.ts"],
  "litesvm/dist/internal.js": ["src/sandbox/chain/svm.ts"],
  "@solana/kit": [],
  "@solana/web3.js": ["src/platform/solana/"],
  "@photostructure/sqlite": ["src/platform/store/"],
  pg: ["src/platform/store/"],
  undici: ["src/gateway/routes/", "src/platform/solana/"],
  "@matrixai/quic": ["src/core/quic/quiche.ts"],
  "@matrixai/quic/dist/native/quiche.js": ["src/core/quic/quiche.ts"],
  "prom-client": ["src/platform/metrics/"],
  pino: ["src/core/log.ts"],
  yaml: ["src/core/configuration/"],
  zod: ["src/core/configuration/"],
  "@scure/base": ["src/core/base58.ts"],
};

/** Imports that rules may not have: access to the outside, or to the time. */
const ioModules =
  /^node:(fs|net|dgram|http|https|http2|tls|dns|child_process|worker_threads|cluster|timers|perf_hooks|os)\b/;

/** Identifiers that read a clock, wait, or generate random numbers. */
const impureWords =
  /\b(Date\.now|new Date\(\)|Math\.random|set(Timeout|Interval|Immediate)\(|performance\.now|process\.hrtime|crypto\.random|randomBytes)/;

/** Module and folder of a file in src/: "src/a/b/c.ts" -> ["a", "b"], "src/a/c.ts" -> ["a", ""]. */
function moduleOf(path: string): readonly [string, string] {
  const [, top = "", folder = "", file] = path.split("/");
  return [top, file === undefined ? "" : folder];
}

function isModule(name: string): name is Module {
  return modules.some((each) => each === name);
}

function stripComments(text: string): string {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, "");
}

/**
 * The reason why a file of `[top, folder]` may not import one of `[otherTop, otherFolder]`; null: it
 * may.
 */
function importRefusal(
  [top, folder]: readonly [string, string],
  [otherTop, otherFolder]: readonly [string, string],
): string | null {
  if (!isModule(otherTop)) return `there is no module ${otherTop}`;
  if (otherTop !== top) {
    const isBelow = isModule(top) && modules.indexOf(otherTop) < modules.indexOf(top);
    return isBelow ? null : `${otherTop} is above ${top}`;
  }
  const table = Object.hasOwn(folderImports, top) ? folderImports[top] : undefined;
  const isAllowed = !table || folder === otherFolder || table[folder]?.includes(otherFolder);
  return isAllowed ? null : `${top}/${folder} does not import ${top}/${otherFolder}`;
}

/** Whether every import of `name` is "import type". */
function importsTypesOnly(text: string, name: string): boolean {
  const imports = text.match(/^(import|export)\b[^;]*;/gm) ?? [];
  return imports
    .filter((each) => each.includes(`"${name}"`))
    .every((each) => each.startsWith("import type "));
}

/** Violations of the order by one file. Exported rules are also checked on planted files below. */
function layerBreaches({ path, text }: SourceFile): string[] {
  const moduleName = moduleOf(path);
  if (moduleName[0] === callersLibrary) return [];
  if (!isModule(moduleName[0]))
    return [`${path}: ${moduleName[0]} is not listed in test/architecture.test.ts`];
  return importsOf(text)
    .filter((name) => name.startsWith("."))
    .flatMap((name) => {
      const target = join(dirname(path), name);
      if (target === responseTypes && responseTypeUsers.some((user) => path.startsWith(user))) {
        return importsTypesOnly(text, name) ? [] : [`${path}: ${name} holds types only`];
      }
      const other = moduleOf(target);
      const isUser = callersLibraryUsers.some((user) => path.startsWith(user));
      if (other[0] === callersLibrary && isUser) return [];
      const refusal = importRefusal(moduleName, other);
      if (refusal !== null) return [`${path} imports ${name}: ${refusal}`];
      const isStarted = sandboxStarters.some((starter) => path.startsWith(starter));
      const reachesIntoSandbox = other[0] === "sandbox" && moduleName[0] !== "sandbox";
      return reachesIntoSandbox && !isStarted
        ? [`${path} imports ${name}: the sandbox is not part of the product`]
        : [];
    });
}

/** Files that import each other in a cycle, including types; each cycle once, as its paths. */
function importCircles(files: readonly SourceFile[]): string[][] {
  const graph = new Map(
    files.map(({ path, text }) => [
      path,
      importsOf(text)
        .filter((name) => name.startsWith("."))
        .map((name) => join(dirname(path), name)),
    ]),
  );
  const circles: string[][] = [];
  const done = new Set<string>();
  const visit = (path: string, trail: readonly string[]): void => {
    const start = trail.indexOf(path);
    if (start >= 0) {
      circles.push(trail.slice(start));
      return;
    }
    if (done.has(path)) return;
    for (const next of graph.get(path) ?? []) visit(next, [...trail, path]);
    done.add(path);
  };
  for (const path of graph.keys()) visit(path, []);
  return circles;
}

function packageBreaches({ path, text }: SourceFile): string[] {
  return importsOf(text).flatMap((name) => {
    const places = Object.hasOwn(onlyIn, name) ? onlyIn[name] : undefined;
    if (!places || places.some((moduleName) => path.startsWith(moduleName))) return [];
    return [`${path}: ${name} belongs to ${places.join(", ")}`];
  });
}

function ruleBreaches({ path, text }: SourceFile): string[] {
  const isRule = rules.some((rule) => path.startsWith(rule)) && !adaptersBesideRules.includes(path);
  const isCore = path.startsWith("src/core/");
  if ((!isRule && !isCore) || path === "src/core/clock.ts") return [];
  const words = impureWords.exec(stripComments(text))?.[0];
  const found = words === undefined ? [] : [`${path}: ${words} outside src/core/clock.ts`];
  if (isRule) {
    const foreign = importsOf(text).filter((name) => ioModules.test(name));
    found.push(...foreign.map((name) => `${path}: a rule must not import ${name}`));
  }
  return found;
}

/**
 * Folders of native/ and the folders that each may include, in addition to itself. Only downwards.
 */
const nativeIncludes: Readonly<Record<string, readonly string[]>> = {
  system: [],
  crypto: ["system"],
  net: ["system"],
  quic: ["net", "crypto", "system"],
  clone: ["net", "system"],
  xdp: ["clone", "net", "system"],
  shred: ["crypto", "system"],
  transaction: ["crypto", "system"],
  deshred: ["shred", "crypto", "system", "transaction"],
  stream: ["deshred", "shred", "crypto", "system", "transaction"],
  relay: ["clone", "xdp", "net", "shred", "crypto", "system", "transaction", "deshred", "stream"],
  verify: ["net", "crypto", "system", "transaction"],
  submission: ["system", "net", "crypto", "transaction", "verify"],
  addon: [
    "relay",
    "stream",
    "verify",
    "submission",
    "quic",
    "clone",
    "xdp",
    "net",
    "shred",
    "crypto",
    "system",
    "transaction",
    "deshred",
  ],
};

/** Folders that other folders include through one header. */
const nativeHeaders: Readonly<Record<string, string>> = {
  clone: "clone/clone.h",
  xdp: "xdp/xdp.h",
};

/** Folders that call sockets: packets, the clone path, AF_XDP, and the service manager. */
const socketFolders: readonly string[] = ["net", "clone", "xdp", "system"];

const socketCalls =
  /(?<![\w.>])(?:::)?(socket|bind|connect|listen|accept4?|send|sendto|sendmsg|sendmmsg|recv|recvfrom|recvmsg|recvmmsg|setsockopt|getsockopt|ppoll|epoll_wait)\((?!\))/;
const clockCalls = /\b(clock_gettime|clock_ns|gettimeofday|std::chrono)\b/;
/** They wait for, read and write sockets that JavaScript has opened. */
const socketUsers: readonly string[] = [
  "native/submission/fast_path_sockets.cc",
  "native/submission/fast_path_thread.cc",
  "native/quic/connection_socket.cc",
  "native/quic/first_packet_socket.cc",
];
const clockReaders = [
  ...socketUsers,
  "native/relay/worker.cc",
  "native/relay/worker_housekeeping.cc",
  "native/relay/deshred_thread.cc",
  "native/relay/sender_threads.cc",
];

function nativeBreaches({ path, text }: SourceFile): string[] {
  const folder = path.split("/")[1] ?? "";
  const allowed = Object.hasOwn(nativeIncludes, folder) ? nativeIncludes[folder] : undefined;
  if (!allowed) return [`${path}: the folder ${folder} has no row in test/architecture.test.ts`];
  const found = includesOf(text).flatMap((name) => {
    if (/^(napi|node_api|js_native_api|uv|v8)\b/.test(name)) {
      return folder === "addon" ? [] : [`${path}: only addon includes ${name}`];
    }
    const included = name.includes("/") ? (name.split("/")[0] ?? "") : folder;
    const isOurs = Object.hasOwn(nativeIncludes, included);
    if (!isOurs || included === folder) return [];
    if (!allowed.includes(included)) return [`${path}: ${folder} must not include ${name}`];
    const header = Object.hasOwn(nativeHeaders, included) ? nativeHeaders[included] : name;
    return header === name ? [] : [`${path}: include ${header}, not ${name}`];
  });
  const code = stripComments(text);
  const mayCall = socketFolders.includes(folder) || socketUsers.includes(path);
  const call = mayCall ? undefined : socketCalls.exec(code)?.[1];
  if (call !== undefined && path.endsWith(".cc")) {
    found.push(`${path}: only ${socketFolders.join(", ")} call ${call}()`);
  }
  const clock = clockCalls.exec(code)?.[1];
  if (clock !== undefined && !socketFolders.includes(folder) && !clockReaders.includes(path)) {
    found.push(`${path}: only the threads' loops read the clock, here ${clock}`);
  }
  return found;
}

const typeScript = sourceFiles("src", [".ts", ".tsx"]);
const nativeFiles = sourceFiles("native", [".cc", ".h"]);
const nativeCore = nativeFiles.filter(({ path }) => !/^native\/(test|fuzz)\//.test(path));
function clientBreaches({ path, text }: SourceFile): string[] {
  if (!path.startsWith("src/client/")) return [];
  const isForNode = path.startsWith(callersLibraryForNode);
  const allowed = isForNode
    ? /^(\.{1,2}\/[\w-]+\.ts|\.\.\/\.\.\/core\/.*|node:.*)$/
    : /^\.\/[\w-]+\.ts$/;
  // A field named "from" resembles an import: its name would contain a line break.
  const found = importsOf(text).filter((name) => !name.includes("\n") && !allowed.test(name));
  if (isForNode) return found.map((name) => `${path}: the client must not import ${name}`);
  const words = stripComments(text).match(/\b(process|Buffer|require)\b[.(]/g) ?? [];
  return [...found, ...words].map((name) => `${path}: the client must not use ${name}`);
}

/** Names of paths, methods, keys and their headers: the HTTP adapter must not know them. */
const productWords =
  /["'`]\/[a-z][\w/.-]*["'`]|json-?rpc|\bapi[-_]?key|x-jito|\bauthorization\b|\b(send|get)[A-Z]\w+(Transaction|Bundle|Batch|Status|Accounts)\b/i;

function httpBreaches({ path, text }: SourceFile): string[] {
  if (!path.startsWith("src/gateway/http/")) return [];
  const word = productWords.exec(stripComments(text.replaceAll('"/*"', "")))?.[0];
  return word === undefined ? [] : [`${path}: the HTTP adapter must not know ${word}`];
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

  it("has no circle of imports, types included", () => {
    expect(importCircles(typeScript)).toEqual([]);
    const planted = [
      { path: "src/a.ts", text: 'import type { x } from "./b.ts";' },
      { path: "src/b.ts", text: 'export { x } from "./c.ts";' },
      { path: "src/c.ts", text: 'import { x } from "./a.ts";' },
      { path: "src/d.ts", text: 'import { x } from "./a.ts";' },
    ];
    expect(importCircles(planted)).toEqual([["src/a.ts", "src/b.ts", "src/c.ts"]]);
    expect(importCircles(planted.slice(1))).toEqual([]);
  });

  it("has at most ten entries, each of at least two files", () => {
    const entries = new Map<string, number>();
    for (const { path } of typeScript) {
      const top = path.split("/")[1] ?? "";
      entries.set(top, (entries.get(top) ?? 0) + 1);
    }
    expect(entries.size).toBeLessThanOrEqual(10);
    expect([...entries].filter(([, files]) => files < 2)).toEqual([]);
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
    const forNode = (text: string) => clientBreaches({ path: "src/client/quic/a.ts", text });
    expect(forNode('import { x } from "../../core/errors.ts"; import "node:dgram";')).toEqual([]);
    expect(forNode('import { x } from "../../gateway/http/types.ts";').length).toBe(1);
  });

  it("keeps product paths out of the HTTP adapter", () => {
    expect(typeScript.flatMap(httpBreaches)).toEqual([]);
    const planted = (text: string) => httpBreaches({ path: "src/gateway/http/a.ts", text });
    for (const text of ['app.get("/relay")', 'head.header("api-key")', '{ jsonrpc: "2.0" }']) {
      expect(planted(text).length, text).toBe(1);
    }
    expect(planted('app.any("/*"); // answers /relay')).toEqual([]);
  });

  it("keeps rules free of I/O, clocks and chance", () => {
    expect(typeScript.flatMap(ruleBreaches)).toEqual([]);
  });

  it("fails on a file that breaks a rule", () => {
    const planted = (path: string, text: string): SourceFile => ({ path, text });
    const breaches = [
      planted("src/core/a.ts", 'import { x } from "../relay/parse-shred.ts";'),
      planted("src/relay/a.ts", 'import type { x } from "../gateway/http/types.ts";'),
      planted("src/tips/a.ts", 'export * from "../shreds/tiers/types.ts";'),
      planted("src/relay/captures/a.ts", 'const x = await import("../data-plane/relay.ts");'),
      planted("src/gateway/http/a.ts", 'import { x } from "../endpoints/gateway.ts";'),
      planted("src/app/a.ts", 'import "../tools/shredway.ts";'),
      planted("src/app/a.ts", 'import "../sandbox/sandbox.ts";'),
      planted("src/tools/race/a.ts", 'import "../../sandbox/sandbox.ts";'),
      planted("src/tools/race/a.ts", 'import "../../client/index.ts";'),
      planted("src/novel/a.ts", ""),
      planted("src/tips/a.ts", 'import type { x } from "../client/responses.ts";'),
      planted("src/gateway/methods/a.ts", 'import type { x } from "../../client/types.ts";'),
      planted("src/gateway/methods/a.ts", 'import { x } from "../../client/responses.ts";'),
    ];
    expect(breaches.flatMap(layerBreaches).length).toBe(breaches.length);
    const allowed = [
      planted("src/tools/sandbox/a.ts", 'import "../../sandbox/sandbox.ts"; import "./b.ts";'),
      planted("src/app/a.ts", 'import { x } from "../platform/store/store.ts";'),
      planted("src/tools/send/a.ts", 'import { x } from "../../client/index.ts";'),
      planted("src/gateway/methods/a.ts", 'import type { x } from "../../client/responses.ts";'),
    ];
    expect(allowed.flatMap(layerBreaches)).toEqual([]);
    const addon = planted("src/tools/a.ts", 'require("node-gyp-build")(root);');
    expect(packageBreaches(addon)).toEqual([
      "src/tools/a.ts: node-gyp-build belongs to src/relay/data-plane/native.ts",
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
    expect(planted("native/relay/a.cc", '#include "clone/clone_plane.h"').length).toBe(1);
    expect(planted("native/relay/a.cc", '#include "clone/clone.h"')).toEqual([]);
    expect(planted("native/net/a.cc", '#include "clone/clone.h"').length).toBe(1);
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
