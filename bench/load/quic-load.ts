// The native QUIC load generator (bench/native/quic/quic_load.cc), driven by commands.
//
// Requires a C++ compiler and Debian's libngtcp2-dev, libngtcp2-crypto-gnutls-dev and libgnutls28-dev.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { newEcdsaCredentials } from "../../src/core/quic/certificate.ts";
import { numberOf } from "../report/lines.ts";
import { LineReader } from "./http-load.ts";

const sources = ["quic/quic_load.cc", "quic/quic_connection.cc", "clocks.cc"].map((name) =>
  fileURLToPath(new URL(`../native/${name}`, import.meta.url)),
);
const libraries = ["-lngtcp2", "-lngtcp2_crypto_gnutls", "-lgnutls"];
const headers = ["ngtcp2/ngtcp2.h", "ngtcp2/ngtcp2_crypto_gnutls.h", "gnutls/gnutls.h"];

/** Why the generator cannot be built; null: it can. */
export function quicLoadProblem(): string | null {
  const missing = headers.find((name) => !existsSync(`/usr/include/${name}`));
  return missing === undefined ? null : `expected /usr/include/${missing}, got none`;
}

export interface QuicPlan {
  readonly port: number;
  readonly connections: number;
  readonly seconds: number;
  /** 0: as fast as the server grants streams. */
  readonly ratePerSecond: number;
  /** File with transactions in base64, one for each line. */
  readonly file: string;
  /** Processes whose CPU time is counted. */
  readonly pids: readonly number[];
}

export interface QuicResult {
  readonly answered: number;
  readonly accepted: number;
  readonly limited: number;
  readonly refused: number;
  /** Submissions without an answer two seconds after the end. */
  readonly unanswered: number;
  readonly seconds: number;
  readonly cpuNs: number;
  readonly p50Ns: number;
  readonly p99Ns: number;
}

export interface RouteTimes {
  readonly arrived: number;
  readonly routeP50Ns: number;
  readonly routeP99Ns: number;
  /** From the system call that sends the last bytes. */
  readonly sentToRouteP50Ns: number;
  readonly sentToRouteP99Ns: number;
}

export interface IdleResult {
  readonly connections: number;
  /** Resident memory of the first process: without connections, and at both ends of the measurement. */
  readonly emptyBytes: number;
  readonly beforeBytes: number;
  readonly afterBytes: number;
  readonly cpuNs: number;
  readonly seconds: number;
}

export class QuicLoad {
  readonly #child: ChildProcess;
  readonly #lines: LineReader;

  /** Builds the program in `folder`. `credential`: the API key, which becomes the common name. */
  static open(folder: string, credential: string): QuicLoad {
    const program = join(folder, "quic_load");
    execFileSync("c++", ["-std=c++20", "-O2", "-o", program, ...sources, ...libraries]);
    const { keyPem, certificatePem } = newEcdsaCredentials(credential);
    const files = [join(folder, "client.key"), join(folder, "client.pem")] as const;
    writeFileSync(files[0], keyPem, { mode: 0o600 });
    writeFileSync(files[1], certificatePem);
    return new QuicLoad(spawn(program, files, { stdio: ["pipe", "pipe", "inherit"] }));
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
    this.#lines = new LineReader(child);
  }

  /** Submits the transactions of the file, each one once. */
  async load(plan: QuicPlan): Promise<QuicResult> {
    const { port, connections, seconds, ratePerSecond, file, pids } = plan;
    const words = ["load", port, connections, seconds, ratePerSecond, file, ...pids];
    const line = await this.#ask(words);
    return {
      answered: numberOf(line, "answered"),
      accepted: numberOf(line, "accepted"),
      limited: numberOf(line, "limited"),
      refused: numberOf(line, "refused"),
      unanswered: numberOf(line, "unanswered"),
      seconds: numberOf(line, "elapsed_ns") / 1e9,
      cpuNs: numberOf(line, "cpu_ns"),
      p50Ns: numberOf(line, "p50_ns"),
      p99Ns: numberOf(line, "p99_ns"),
    };
  }

  /** Writes the status of every transaction of the last load, one for each line; 0: no answer. */
  async statuses(file: string): Promise<void> {
    await this.#ask(["statuses", file]);
  }

  /** Matches the last load with the arrivals at a partner. */
  async routeTimes(arrivalsFile: string): Promise<RouteTimes> {
    const line = await this.#ask(["arrivals", arrivalsFile]);
    return {
      arrived: numberOf(line, "arrived"),
      routeP50Ns: numberOf(line, "route_p50_ns"),
      routeP99Ns: numberOf(line, "route_p99_ns"),
      sentToRouteP50Ns: numberOf(line, "sent_to_route_p50_ns"),
      sentToRouteP99Ns: numberOf(line, "sent_to_route_p99_ns"),
    };
  }

  /** Opens connections and keeps them alive by a packet every 25 s. */
  async idle(
    port: number,
    plan: {
      readonly connections: number;
      readonly seconds: number;
      readonly pids: readonly number[];
    },
  ): Promise<IdleResult> {
    const line = await this.#ask(["idle", port, plan.connections, plan.seconds, ...plan.pids]);
    return {
      connections: numberOf(line, "connections"),
      emptyBytes: numberOf(line, "empty_bytes"),
      beforeBytes: numberOf(line, "before_bytes"),
      afterBytes: numberOf(line, "after_bytes"),
      cpuNs: numberOf(line, "cpu_ns"),
      seconds: numberOf(line, "elapsed_ns") / 1e9,
    };
  }

  close(): void {
    this.#child.kill("SIGKILL");
  }

  #ask(words: readonly (string | number)[]) {
    this.#child.stdin?.write(`${words.join(" ")}\n`);
    return this.#lines.next();
  }
}
