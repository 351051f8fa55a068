// Two network namespaces with a link between them, and a test program in each.
//
// Requires root, Debian's iproute2 and /dev/net/tun, see `hasTwoNamespaces`. It does not change the
// machine's own network, and close() removes everything, even after a failure.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { closing } from "../closing.ts";
import { childProgramWords } from "../processes/child-program.ts";
import { isFullRun } from "../vitest/test-scope.ts";

const program = fileURLToPath(new URL("../transmit/transmit-child.ts", import.meta.url));
const childWords = await childProgramWords(program);

const farMac = "02:00:00:00:0f:0f";

/** Networks on the far side, behind the link's address: 10.77.0.0/16 and fd77::/64. */
export function farAddress(family: 4 | 6, number: number): string {
  return family === 4 ? `10.77.${number >> 8}.${number & 255}` : `fd77::${number.toString(16)}`;
}

export class TwoNamespaces {
  readonly near: string;
  readonly far: string;

  static open(): TwoNamespaces {
    return closing(new TwoNamespaces());
  }

  static canOpen(): boolean {
    try {
      const probe = new TwoNamespaces();
      probe.close();
      return readdirSync("/dev/net").includes("tun");
    } catch {
      return false;
    }
  }

  private constructor() {
    const id = `${process.pid.toString(36)}${randomBytes(3).toString("hex")}`;
    this.near = `shredway-${id}-n`;
    this.far = `shredway-${id}-f`;
    try {
      for (const name of [this.near, this.far]) {
        execFileSync("ip", ["netns", "add", name], { stdio: "pipe" });
        this.ip(name, "link set lo up");
        // Disables duplicate address detection, which would take a second.
        this.run(name, "sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0");
      }
      // For IPv6, a local route alone does not permit bind.
      this.run(this.far, "sysctl", "-qw", "net.ipv6.ip_nonlocal_bind=1");
      this.ip(this.near, `link add cable type veth peer name cable netns ${this.far}`);
      this.ip(this.near, "addr add 10.1.0.1/16 dev cable", "addr add fd01::1/64 dev cable");
      this.ip(this.far, "addr add 10.1.0.2/16 dev cable", "addr add fd01::2/64 dev cable");
      this.ip(this.far, `link set cable address ${farMac}`);
      for (const name of [this.near, this.far]) this.ip(name, "link set cable up");
      // The kernel queues few datagrams for an unresolved neighbour.
      for (const gateway of ["10.1.0.2", "fd01::2"])
        this.ip(this.near, `neigh replace ${gateway} lladdr ${farMac} dev cable nud permanent`);
      this.ip(this.near, "route add 10.77.0.0/16 via 10.1.0.2", "route add fd77::/64 via fd01::2");
      this.ip(
        this.far,
        "route replace local 10.77.0.0/16 dev lo",
        "route replace local fd77::/64 dev lo",
      );
    } catch (thrown) {
      this.close();
      throw thrown;
    }
  }

  /** Lines in the format of ip(8). */
  ip(namespace: string, ...lines: readonly string[]): void {
    for (const line of lines)
      execFileSync("ip", ["-n", namespace, ...line.split(" ")], { stdio: "pipe" });
  }

  run(namespace: string, ...command: readonly string[]): string {
    const words = ["netns", "exec", namespace, ...command];
    return execFileSync("ip", words, { encoding: "utf8", stdio: "pipe" });
  }

  /** Starts transmit-child.ts in a namespace. `before`: a command prefix, such as setpriv. */
  child(namespace: string, before: readonly string[] = []): TransmitChild {
    const command = [...before, process.execPath, ...childWords];
    return closing(new TransmitChild(["netns", "exec", namespace, ...command]));
  }

  /** Captures the next `count` UDP datagrams to a port at the far end of the link. */
  capture(file: string, port: number, count: number): Capture {
    return closing(
      new Capture(
        ["netns", "exec", this.far, "tshark", "-i", "cable"],
        ["-f", `udp dst port ${port}`, "-c", String(count), "-w", file],
      ),
    );
  }

  close(): void {
    for (const name of [this.near, this.far]) {
      try {
        execFileSync("ip", ["netns", "delete", name], { stdio: "pipe" });
      } catch {
        // It does not exist.
      }
    }
  }
}

export class Capture {
  readonly #process: ChildProcess;
  readonly #ended: Promise<unknown>;
  readonly started: Promise<void>;

  constructor(before: readonly string[], options: readonly string[]) {
    this.#process = spawn("ip", [...before, ...options], { stdio: ["ignore", "ignore", "pipe"] });
    this.#ended = once(this.#process, "exit");
    let said = "";
    this.started = new Promise((resolve, reject) => {
      this.#process.stderr?.on("data", (chunk: Buffer) => {
        said += chunk.toString();
        if (said.includes("Capture started")) resolve();
      });
      void this.#ended.then(() => reject(new Error(`tshark ended: ${said}`)));
    });
  }

  /** Settles when all packets are captured. */
  async done(): Promise<void> {
    await this.#ended;
  }

  async close(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#ended;
  }
}

export class TransmitChild {
  readonly #process: ChildProcess;
  readonly #waiting = new Map<number, (answer: { value?: unknown; error?: string }) => void>();
  readonly #ended: Promise<unknown>;
  #next = 0;

  constructor(words: readonly string[]) {
    this.#process = spawn("ip", [...words], {
      stdio: ["ignore", "inherit", "inherit", "ipc"],
      serialization: "advanced",
    });
    this.#ended = once(this.#process, "exit");
    this.#process.on("exit", () => {
      for (const settle of this.#waiting.values()) settle({ error: "the child has ended" });
    });
    this.#process.on("message", (message: { id: number; value?: unknown; error?: string }) => {
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    });
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** Calls a function of transmit-child.ts and throws its exceptions here. */
  async call<T>(name: string, ...args: readonly unknown[]): Promise<T> {
    const id = this.#next++;
    const answered = new Promise<{ value?: unknown; error?: string }>((resolve) => {
      this.#waiting.set(id, resolve);
    });
    this.#process.send({ id, name, args });
    const { value, error } = await answered;
    if (error !== undefined) throw new Error(error);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- both sides are the tests' own
    return value as T;
  }

  async kill(): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#ended;
  }

  close(): Promise<void> {
    return this.kill();
  }
}

export const hasTwoNamespaces = isFullRun && TwoNamespaces.canOpen();
