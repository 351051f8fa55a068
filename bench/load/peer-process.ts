// Senders that take sendTransaction over HTTP and send to a QUIC server: the peer that the operator names,
// and the lower bound of bench/baselines/quic_proxy.cc.
//
// docs/benchmarks.md describes the contract: the environment of the program, and its end.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { accessSync, constants, existsSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/core/clock.ts";
import { SandboxKeyPair } from "../../src/sandbox/chain/keys.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const proxyHeaders = [
  "/usr/include/ngtcp2/ngtcp2.h",
  "/usr/include/ngtcp2/ngtcp2_crypto_gnutls.h",
  "/usr/include/gnutls/gnutls.h",
];
const startMsMax = 30_000;
const pollMs = 20;

export interface PeerProcess {
  readonly child: ChildProcess;
  readonly port: number;
}

/** Path of the peer; null: the operator named none. Throws if it is not an executable file. */
export function peerProgram(): string | null {
  const path = process.env["SHREDWAY_PEER_SENDER"] ?? "";
  if (path === "") return null;
  try {
    accessSync(path, constants.X_OK);
    return path;
  } catch {
    throw new Error(
      `SHREDWAY_PEER_SENDER: expected the path of an executable file, got ${JSON.stringify(path.slice(0, 200))}; ` +
        "see docs/benchmarks.md",
    );
  }
}

/** Compiles the lower bound into `folder`; null: a library or the compiler is missing. */
export function buildQuicProxy(folder: string): string | null {
  if (!proxyHeaders.every((path) => existsSync(path))) return null;
  const program = join(folder, "quic_proxy");
  const sources = ["bench/baselines/quic_proxy.cc", "bench/native/http_message.cc"];
  const libraries = ["-lngtcp2", "-lngtcp2_crypto_gnutls", "-lgnutls"];
  try {
    execFileSync("c++", ["-std=c++20", "-O2", "-o", program, ...sources, ...libraries], {
      cwd: root,
      stdio: ["ignore", "ignore", "pipe"],
    });
    return program;
  } catch {
    return null;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const address = server.address();
  await new Promise((resolve) => server.close(resolve));
  if (typeof address !== "object" || address === null) throw new Error("expected a port, got none");
  return address.port;
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const end = (isOpen: boolean): void => {
      socket.destroy();
      resolve(isOpen);
    };
    socket.once("connect", () => end(true));
    socket.once("error", () => end(false));
  });
}

/** Starts the program and waits until it listens. Throws if it ends, or does not listen in 30 s. */
export async function startPeer(
  program: string,
  options: { readonly leaderPort: number; readonly folder: string },
): Promise<PeerProcess> {
  const { leaderPort, folder } = options;
  const port = await freePort();
  const identity = join(folder, `identity-${randomBytes(4).toString("hex")}.json`);
  const { seed, publicKey } = SandboxKeyPair.named(1, "peer");
  writeFileSync(identity, JSON.stringify([...seed, ...publicKey]), { mode: 0o600 });
  const child = spawn(program, [], {
    stdio: ["ignore", "ignore", "inherit"],
    env: {
      ...process.env,
      SHREDWAY_PEER_LISTEN: `127.0.0.1:${port}`,
      SHREDWAY_PEER_LEADER: `127.0.0.1:${leaderPort}`,
      SHREDWAY_PEER_IDENTITY: identity,
    },
  });
  let failure = "";
  child.once("error", (error) => {
    failure = error.message;
  });
  const untilMs = performance.now() + startMsMax;
  while (!(await isListening(port))) {
    if (child.exitCode !== null || child.signalCode !== null)
      failure ||= `it ended with ${child.exitCode ?? child.signalCode}`;
    if (failure !== "" || performance.now() > untilMs) {
      child.kill("SIGKILL");
      throw new Error(
        `${program}: expected a listener at 127.0.0.1:${port} (SHREDWAY_PEER_LISTEN): ` +
          (failure || `none in ${startMsMax / 1000} s`),
      );
    }
    await systemClock.sleep(pollMs);
  }
  return { child, port };
}
