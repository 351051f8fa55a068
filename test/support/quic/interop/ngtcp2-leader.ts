// An independent leader (ngtcp2-leader.cc), compiled with the installed C++ compiler and run.
//
// Requires a C++ compiler and Debian 12's libngtcp2-dev, libngtcp2-crypto-gnutls-dev and
// libgnutls28-dev. `ngtcp2Problem` describes a missing requirement: describe.skipIf(ngtcp2Problem
// !== null).

import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { newCredentials } from "../../../../src/core/quic/certificate.ts";
import { closing } from "../../closing.ts";
import type { NetworkNamespace } from "../../network/network-namespace.ts";
import { until } from "../../network/udp-receiver.ts";
import { temporaryFolder } from "../../temporary-folder.ts";

const versionHeader = "/usr/include/ngtcp2/version.h";
const headers = [
  versionHeader,
  "/usr/include/ngtcp2/ngtcp2.h",
  "/usr/include/ngtcp2/ngtcp2_crypto_gnutls.h",
  "/usr/include/gnutls/gnutls.h",
];
/** Maximum duration of a build on a busy machine. */
export const buildTimeoutMs = 600_000;

function findProblem(): string | null {
  const missing = headers.find((path) => !existsSync(path));
  if (missing !== undefined) return `expected ${missing}, got none`;
  const [, version = "none"] =
    /^#define NGTCP2_VERSION "([^"]*)"/m.exec(readFileSync(versionHeader, "utf8")) ?? [];
  if (!version.startsWith("0.")) return `expected ngtcp2 0.x, got ${version}`;
  try {
    execFileSync("c++", ["--version"], { stdio: "pipe" });
    return null;
  } catch {
    return "expected a C++ compiler, got none";
  }
}

/** Why it cannot be built; null: it can. */
export const ngtcp2Problem = findProblem();

const libraries = ["-lngtcp2", "-lngtcp2_crypto_gnutls", "-lgnutls"];

export interface Ngtcp2Options {
  /** Maximum number of concurrent streams of a peer. Default 100. */
  readonly streams?: number;
  /** Answers first packets with a retry. Default true. */
  readonly retries?: boolean;
  /** Address; default: 127.0.0.1 on this machine. */
  readonly namespace?: NetworkNamespace;
}

/** Compiles a program of this folder into `folder`. Returns the program's path. */
export function buildNgtcp2(name: "ngtcp2-leader" | "ngtcp2-client", folder: string): string {
  const program = join(folder, name);
  const source = fileURLToPath(new URL(`${name}.cc`, import.meta.url));
  execFileSync("c++", ["-std=c++20", "-O0", "-o", program, source, ...libraries]);
  return program;
}

export function buildNgtcp2Leader(folder: string): string {
  return buildNgtcp2("ngtcp2-leader", folder);
}

export class Ngtcp2Leader {
  /** In hexadecimal, in order of arrival. */
  readonly transactions: string[] = [];
  /** Public keys in hexadecimal, one for every handshake. */
  readonly identities: string[] = [];
  /** How connections ended, in ngtcp2's words. */
  readonly ends: string[] = [];
  #port = 0;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #host: string;

  static async open(program: string, options: Ngtcp2Options = {}): Promise<Ngtcp2Leader> {
    const folder = temporaryFolder();
    const { keyPem, certificatePem } = newCredentials();
    const files = [join(folder, "key.pem"), join(folder, "certificate.pem")] as const;
    writeFileSync(files[0], keyPem);
    writeFileSync(files[1], certificatePem);
    const { streams = 100, retries = true, namespace } = options;
    const host = namespace?.there ?? "127.0.0.1";
    const way = retries ? "retry" : "direct";
    const own = [program, ...files, String(streams), way, host];
    const [file = "", ...rest] = namespace ? [...namespace.command, ...own] : own;
    const leader = new Ngtcp2Leader(spawn(file, rest), host);
    closing(leader);
    await until(() => leader.#port !== 0, "the leader's port");
    return leader;
  }

  private constructor(child: ChildProcessWithoutNullStreams, host: string) {
    this.#child = child;
    this.#host = host;
    createInterface({ input: child.stdout }).on("line", (line) => this.#note(line));
    child.stderr.pipe(process.stderr);
  }

  get address(): string {
    return `${this.#host}:${this.#port}`;
  }

  /** Closes every connection with an application code. */
  closeAll(code: number, reason: string): void {
    this.#child.stdin.write(`close ${code} ${reason}\n`);
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.stdin.end();
    await exited;
  }

  #note(line: string): void {
    const [what = "", value = ""] = line.split(/ (.*)/s);
    if (what === "port") this.#port = Number(value);
    else if (what === "identity") this.identities.push(value);
    else if (what === "transaction") this.transactions.push(value);
    else if (what === "end") this.ends.push(value);
  }
}
