// A network namespace with a link to this machine's network that can be degraded.
//
// Requires root and Debian's iproute2, see `hasNamespaces`: describe.skipIf(!hasNamespaces). The
// link's addresses are in the benchmark range (198.18.0.0/15); no packet leaves the machine.

import { execFileSync } from "node:child_process";
import { randomBytes, randomInt } from "node:crypto";
import { isFullRun } from "../vitest/test-scope.ts";

function ip(...words: string[]): void {
  execFileSync("ip", words, { stdio: "pipe" });
}

/** Ignores errors, because the object may not exist. */
function ipIfPossible(...words: string[]): void {
  try {
    ip(...words);
  } catch {
    // The object does not exist.
  }
}

const subnets = 32_768;
const subnetsEach = 8;
const congestion = ["tbf", "rate", "20mbit", "burst", "3kb", "limit", "8kb"];

/** The first three bytes and the last byte of a /30 that no other process uses. */
function freeSubnet(): { readonly net: string; readonly first: number } {
  for (;;) {
    const number = (process.pid * subnetsEach + randomInt(subnetsEach)) % subnets;
    const net = `198.${18 + (number >> 14)}.${(number >> 6) & 255}`;
    const first = (number & 63) * 4;
    const show = ["-4", "-o", "address", "show", "to", `${net}.${first}/30`];
    if (execFileSync("ip", show, { encoding: "utf8", stdio: "pipe" }) === "") return { net, first };
  }
}

interface Queue {
  readonly drops?: number;
}

export class NetworkNamespace {
  /** The address of this side, and of the other side. */
  readonly here: string;
  readonly there: string;
  readonly #name: string;
  readonly #near: string;
  readonly #far: string;

  /** The caller closes it. */
  static open(): NetworkNamespace {
    return new NetworkNamespace();
  }

  /** Creates a namespace with everything that tests need; close deletes it. */
  static canOpen(): boolean {
    try {
      const probe = new NetworkNamespace();
      try {
        const [file = "", ...rest] = probe.command;
        execFileSync(file, [...rest, "true"], { stdio: "pipe" });
        probe.#setQueues(congestion);
        return probe.drops === 0;
      } finally {
        probe.close();
      }
    } catch {
      return false;
    }
  }

  private constructor() {
    // Unique for each process and each of its namespaces; interface names have at most 15
    // characters.
    const id = `${(process.pid & 0xffff).toString(16)}${randomBytes(3).toString("hex")}`;
    this.#name = `shredway-${id}`;
    this.#near = `sw${id}n`;
    this.#far = `sw${id}f`;
    const { net, first } = freeSubnet();
    this.here = `${net}.${first + 1}`;
    this.there = `${net}.${first + 2}`;
    try {
      this.#make();
    } catch (thrown) {
      this.close();
      throw thrown;
    }
  }

  #make(): void {
    ip("netns", "add", this.#name);
    ip("link", "add", this.#near, "type", "veth", "peer", "name", this.#far);
    ip("link", "set", this.#far, "netns", this.#name);
    ip("address", "add", `${this.here}/30`, "dev", this.#near);
    ip("link", "set", this.#near, "up");
    ip("-n", this.#name, "address", "add", `${this.there}/30`, "dev", this.#far);
    ip("-n", this.#name, "link", "set", this.#far, "up");
  }

  get name(): string {
    return this.#name;
  }

  /** Prefix of a command that runs in the namespace. */
  get command(): readonly string[] {
    return ["ip", "netns", "exec", this.#name];
  }

  /**
   * Makes both directions lose packets. Where the kernel supports it, randomly (a tenth, with a
   * delay); otherwise by a limit of 20 Mbit/s with a short queue.
   */
  impair(): "chance" | "congestion" {
    const chance = ["netem", "loss", "10%", "delay", "3ms"];
    try {
      this.#setQueues(chance);
      return "chance";
    } catch {
      this.#setQueues(congestion);
      return "congestion";
    }
  }

  /** Number of packets that the queues of both directions lost. */
  get drops(): number {
    const show = ["-s", "-j", "qdisc", "show", "dev"];
    return this.#tc([...show, this.#near], [...show, this.#far]).reduce((sum, text) => {
      const queues: Queue[] = JSON.parse(text);
      return sum + queues.reduce((drops, queue) => drops + (queue.drops ?? 0), 0);
    }, 0);
  }

  /** Disconnects or reconnects the link. */
  connect(isConnected: boolean): void {
    ip("-n", this.#name, "link", "set", this.#far, isConnected ? "up" : "down");
  }

  close(): void {
    ipIfPossible("link", "delete", this.#near); // both ends
    ipIfPossible("netns", "delete", this.#name);
  }

  #setQueues(queue: readonly string[]): void {
    const add = (device: string): string[] => ["qdisc", "add", "dev", device, "root", ...queue];
    this.#tc(add(this.#near), add(this.#far));
  }

  #tc(near: readonly string[], far: readonly string[]): string[] {
    const [file = "", ...rest] = this.command;
    const settings = { encoding: "utf8", stdio: "pipe" } as const;
    return [
      execFileSync("tc", [...near], settings),
      execFileSync(file, [...rest, "tc", ...far], settings),
    ];
  }
}

export const hasNamespaces = isFullRun && NetworkNamespace.canOpen();
