// Starts the process of the QUIC connections, with no more than it needs.
//
// It gets one socket to the gateway, a pipe for its last words, the UDP sockets of the ingress, no other
// descriptor, and almost no environment: secrets of the configuration may be there. The identity goes
// through the socket to the gateway.

import { type ChildProcess, spawn } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

/** The socket to the gateway, in the process. */
export const channelDescriptor = 3;
const heapMegabytes = 192;
/** Limit of the kernel for what it allocates after its start, in bytes. */
export const allocatedBytesMax = 1 << 30;
/** Limit of its resident memory, which the gateway checks: below the limit of the kernel. */
export const residentBytesMax = 512 << 20;
/** Needed to find shared libraries and the addon, and by builds with sanitizers. */
const keptVariables = [
  "LD_LIBRARY_PATH",
  "LD_PRELOAD",
  "ASAN_OPTIONS",
  "TSAN_OPTIONS",
  "SHREDWAY_PREBUILD",
];

function environment(): NodeJS.ProcessEnv {
  const kept = keptVariables.flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.fromEntries(kept);
}

/** Programs without the extension; each is a file of this module. */
type Program = "./quic-process-main" | "../quic/ingress-process-main";

/**
 * `descriptors`: further open files for the process, which has them as 4, 5, …; its last argument is the
 * number of all its descriptors. `variables`: further environment, for tests.
 */
export function startQuicProcess(
  program: Program = "./quic-process-main",
  descriptors: readonly number[] = [],
  variables: NodeJS.ProcessEnv = {},
): ChildProcess {
  const isCompiled = import.meta.url.endsWith(".js");
  const name = `${program}${isCompiled ? ".js" : ".ts"}`;
  // From source (tests, tsx): a process does not inherit the TypeScript loader.
  const loader = isCompiled
    ? []
    : ["--import", pathToFileURL(createRequire(import.meta.url).resolve("tsx")).href];
  const words = [
    `--max-old-space-size=${heapMegabytes}`,
    ...loader,
    fileURLToPath(new URL(name, import.meta.url)),
    `${channelDescriptor + 1 + descriptors.length}`,
  ];
  return spawn(process.execPath, words, {
    cwd: "/",
    env: { ...environment(), ...variables },
    stdio: ["ignore", "ignore", "pipe", "pipe", ...descriptors],
    // In a session of its own: signals of a terminal are for the gateway, which then ends it.
    detached: true,
  });
}
