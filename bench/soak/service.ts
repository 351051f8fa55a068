// The service under test as a child process, with a configuration, a key, and a data folder that can fill up.

import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdirSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { sandboxPace, sandboxSources, sandboxTiers } from "../../src/sandbox/plan.ts";
import type { ClusterReady } from "./cluster-messages.ts";

/** Library of Debian's package faketime. */
export const fakeTimeLibrary = "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1";
const diskBytes = 4 * 2 ** 30;
const requestsPerSecond = 10_000;

export interface ServiceOptions {
  readonly folder: string;
  /** The command line. */
  readonly program: string;
  /** Options of Node.js. */
  readonly nodeOptions?: readonly string[];
  readonly cluster: ClusterReady;
  /** Fixed destinations, "ip:port" with a tier. */
  readonly destinations: readonly { readonly address: string; readonly tier: string }[];
  /** URL of a PostgreSQL database; undefined: SQLite. */
  readonly postgres: string | undefined;
  readonly clockJumps: boolean;
  /** Whether the QUIC ingress is on. */
  readonly hasQuic?: boolean;
}

function run(program: string, ...words: string[]): boolean {
  return spawnSync(program, words, { stdio: "ignore" }).status === 0;
}

export class Service {
  readonly apiKey: string;
  readonly relayAddress: string;
  readonly url: string;
  /** "ip:port" of the QUIC ingress; empty: it is off. */
  readonly quicAddress: string;
  readonly pid: number;
  readonly #child: ChildProcess;
  readonly #options: ServiceOptions;
  readonly #disk: string;
  readonly #ownsDisk: boolean;
  #reloads = 0;
  /** Exit code, or the signal; null while it runs. */
  exit: number | string | null = null;

  static async start(options: ServiceOptions): Promise<Service> {
    const { nodeOptions = [] } = options;
    const disk = join(options.folder, "disk");
    mkdirSync(disk, { recursive: true });
    const ownsDisk =
      process.getuid?.() === 0 &&
      run("mount", "-t", "tmpfs", "-o", `size=${diskBytes}`, "soak", disk);
    const config = join(options.folder, "soak.yaml");
    writeConfig(options, disk, 0);
    const made = spawnSync(
      process.execPath,
      [
        ...nodeOptions,
        options.program,
        "keys",
        "create",
        "--account",
        "soak",
        "--config",
        config,
        "--json",
      ].concat(
        ["--scopes", "submit,batch,read,shreds,operate", "--rate", `${requestsPerSecond}`],
        ["--burst", `${requestsPerSecond}`],
      ),
      { encoding: "utf8" },
    );
    const key = /sw_[\w-]+/.exec(made.stdout)?.[0];
    if (key === undefined) throw new Error(`no key was created:\n${made.stdout}${made.stderr}`);
    const clockFile = join(options.folder, "clock");
    writeFileSync(clockFile, "+0");
    // The kernel ends the service with this process, however this process ends.
    const words = [
      "--pdeathsig",
      "KILL",
      process.execPath,
      ...nodeOptions,
      options.program,
      "start",
    ];
    const child = spawn("setpriv", [...words, "--config", config], {
      stdio: ["ignore", "pipe", "pipe"],
      detached: true, // Ctrl-C ends the load first
      env: {
        ...process.env,
        ...(options.clockJumps && {
          LD_PRELOAD: fakeTimeLibrary,
          FAKETIME_TIMESTAMP_FILE: clockFile,
          FAKETIME_CACHE_DURATION: "1",
          FAKETIME_DONT_FAKE_MONOTONIC: "1",
        }),
      },
    });
    child.stderr.on("data", (chunk: Buffer) => appendFileSync(join(options.folder, "log"), chunk));
    const ready = await readyLine(child, options.folder);
    return new Service(options, { child, ready, key, disk, ownsDisk });
  }

  private constructor(
    options: ServiceOptions,
    opened: {
      readonly child: ChildProcess;
      readonly ready: string;
      readonly key: string;
      readonly disk: string;
      readonly ownsDisk: boolean;
    },
  ) {
    const { child, ready, key, disk, ownsDisk } = opened;
    this.#options = options;
    this.#child = child;
    this.#disk = disk;
    this.#ownsDisk = ownsDisk;
    this.apiKey = key;
    this.pid = child.pid ?? 0;
    this.relayAddress = /listen=(\S+)/.exec(ready)?.[1] ?? "";
    this.quicAddress = / quic=([\d.:]+)/.exec(ready)?.[1] ?? "";
    this.url = `http://${/ http=([\d.:]+)/.exec(ready)?.[1] ?? ""}`;
    child.on("exit", (code, signal) => {
      this.exit = signal ?? code ?? 0;
    });
  }

  /** Folder of the service's store. */
  get dataFolder(): string {
    return join(this.#disk, "data");
  }

  /** Whether the disk of the data folder can be filled: it needs root and a tmpfs. */
  get canFillDisk(): boolean {
    return this.#ownsDisk;
  }

  /** Shrinks the file system to what it holds, or makes it large again. */
  fillDisk(isFull: boolean): void {
    const { blocks, bfree, bsize } = statfsSync(this.#disk);
    const used = Math.max((blocks - bfree) * bsize, bsize);
    run("mount", "-o", `remount,size=${isFull ? used : diskBytes}`, this.#disk);
  }

  /** Changes a destination that nobody receives, and reloads. */
  reload(): void {
    writeConfig(this.#options, this.#disk, ++this.#reloads);
    this.#child.kill("SIGHUP");
  }

  /** Moves the service's wall clock. Needs `clockJumps`. */
  setClock(offsetSeconds: number): void {
    const sign = offsetSeconds < 0 ? "-" : "+";
    writeFileSync(join(this.#options.folder, "clock"), `${sign}${Math.abs(offsetSeconds)}`);
  }

  /** Drains. Returns the exit code, or the signal. */
  async stop(): Promise<number | string> {
    if (this.exit === null) {
      this.#child.kill("SIGTERM");
      await once(this.#child, "exit");
    }
    return this.exit ?? "none";
  }

  kill(): void {
    if (this.exit === null) this.#child.kill("SIGKILL");
  }

  removeDisk(): void {
    if (this.#ownsDisk) run("umount", "-l", this.#disk);
  }
}

function writeConfig(options: ServiceOptions, disk: string, reloads: number): void {
  const { cluster, destinations, postgres, folder } = options;
  const nobody = [{ name: `nobody-${reloads}`, address: `127.0.0.9:${20_000 + (reloads % 1000)}` }];
  const config = {
    solana: { rpc: cluster.rpcUrl },
    http: { listen: "127.0.0.1:0", webSocketListen: [] },
    ...(options.hasQuic && { quic: { listen: "127.0.0.1:0", protectedListen: [] } }),
    data: { directory: join(disk, "data"), ...(postgres !== undefined && { postgres }) },
    tips: { addresses: cluster.tipAddresses, shredAddresses: cluster.shredTipAddresses },
    nonces: { fundingKeyFile: cluster.fundingKeyFile, pollMs: sandboxPace.noncePollMs },
    routes: cluster.routes,
    relay: {
      listen: "127.0.0.1:0",
      workers: 1,
      tiers: sandboxTiers,
      shredVersion: sandboxPace.shredVersion,
      allowPrivateDestinations: true,
      receive: { bufferBytes: 4 << 20 },
      sources: sandboxSources.map(({ name, address, tier }) => ({ name, address, tier })),
      destinations: [...destinations, ...nobody.map((each) => ({ ...each, tier: "tier-1" }))],
    },
  };
  writeFileSync(join(folder, "soak.yaml"), JSON.stringify(config), { mode: 0o600 });
}

function readyLine(child: ChildProcess, folder: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout?.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      const ready = /^ready .*$/m.exec(text)?.[0];
      if (ready !== undefined) resolve(ready);
    });
    child.once("exit", (code) =>
      reject(
        new Error(`the service ended with ${code} before "ready"; see ${join(folder, "log")}`),
      ),
    );
  });
}
