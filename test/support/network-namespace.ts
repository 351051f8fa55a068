// A network namespace with one cable to this machine's own network, which can be made a bad one.
//
// Needs root and Debian's iproute2; `hasNamespaces` tells: describe.skipIf(!hasNamespaces). Addresses
// are private ones of the cable's two ends; nothing leaves the machine.

import { execFileSync } from "node:child_process";
import { closing } from "./closing.ts";

function ip(...words: string[]): void {
  execFileSync("ip", words, { stdio: "pipe" });
}

function canMake(): boolean {
  const name = `shredway-probe-${process.pid}`;
  try {
    ip("netns", "add", name);
    ip("netns", "delete", name);
    return true;
  } catch {
    return false;
  }
}

export const hasNamespaces = canMake();

interface Queue {
  readonly drops?: number;
}

let opened = 0;

export class NetworkNamespace {
  /** This side's address, and the other's. */
  readonly here: string;
  readonly there: string;
  readonly #name: string;
  readonly #near: string;
  readonly #far: string;

  static open(): NetworkNamespace {
    return closing(new NetworkNamespace(opened++));
  }

  private constructor(number: number) {
    // Apart for each process and each namespace of it; names of cables have at most 15 characters.
    const id = `${process.pid % 100_000}-${number % 100}`;
    this.#name = `shredway-${id}`;
    this.#near = `sw${id}n`;
    this.#far = `sw${id}f`;
    const net = `10.${100 + (process.pid % 100)}.${(process.pid >> 8) % 256}`;
    const first = (number % 60) * 4;
    this.here = `${net}.${first + 1}`;
    this.there = `${net}.${first + 2}`;
    ip("netns", "add", this.#name);
    ip("link", "add", this.#near, "type", "veth", "peer", "name", this.#far);
    ip("link", "set", this.#far, "netns", this.#name);
    ip("address", "add", `${this.here}/30`, "dev", this.#near);
    ip("link", "set", this.#near, "up");
    ip("-n", this.#name, "address", "add", `${this.there}/30`, "dev", this.#far);
    ip("-n", this.#name, "link", "set", this.#far, "up");
  }

  /** What to put before a command that is to run in it. */
  get command(): readonly string[] {
    return ["ip", "netns", "exec", this.#name];
  }

  /**
   * Makes both directions lose packets. By chance (a tenth, with a delay) where the kernel can; else
   * by too little room: 20 Mbit/s, and whatever comes faster than that is lost beyond a few packets.
   */
  impair(): "chance" | "congestion" {
    const chance = ["netem", "loss", "10%", "delay", "3ms"];
    const congestion = ["tbf", "rate", "20mbit", "burst", "3kb", "limit", "8kb"];
    try {
      this.#setQueues(chance);
      return "chance";
    } catch {
      this.#setQueues(congestion);
      return "congestion";
    }
  }

  /** Packets that the queues of both directions lost. */
  get drops(): number {
    const show = ["-s", "-j", "qdisc", "show", "dev"];
    return this.#tc([...show, this.#near], [...show, this.#far]).reduce((sum, text) => {
      const queues: Queue[] = JSON.parse(text);
      return sum + queues.reduce((drops, queue) => drops + (queue.drops ?? 0), 0);
    }, 0);
  }

  /** Pulls the cable, or plugs it in. */
  connect(isConnected: boolean): void {
    ip("-n", this.#name, "link", "set", this.#far, isConnected ? "up" : "down");
  }

  close(): void {
    ip("netns", "delete", this.#name); // and with it the cable
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
