// A delayed link between two network namespaces: delay-link.cc, compiled with the installed
// compiler and run.

import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { NetworkNamespace } from "./network-namespace.ts";

const source = fileURLToPath(new URL("delay-link.cc", import.meta.url));
/** Names of the ends of every link: they exist only in the two namespaces. */
export const delayedAddresses = ["198.19.255.1", "198.19.255.2"] as const;

export class DelayLink {
  readonly #child: ChildProcess;

  /**
   * Requires root, a C++ compiler and /dev/net/tun. Each direction has a delay of `delayMs`. The
   * caller closes it.
   */
  static async open(
    folder: string,
    ends: readonly [NetworkNamespace, NetworkNamespace],
    delayMs: number,
  ): Promise<DelayLink> {
    const program = join(folder, "delay-link");
    execFileSync("c++", ["-std=c++20", "-O1", "-o", program, source]);
    const [near, far] = delayedAddresses;
    const words = [ends[0].name, `${near}/30`, ends[1].name, `${far}/30`, String(delayMs)];
    const child = spawn(program, words, { stdio: ["pipe", "pipe", "inherit"] });
    const link = new DelayLink(child);
    const ended = once(child, "exit").then(() => Promise.reject(new Error("the link ended")));
    await Promise.race([once(child.stdout, "data"), ended]);
    ended.catch(() => {});
    return link;
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.stdin?.end();
    await ended;
  }
}
