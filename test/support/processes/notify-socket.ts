// A service manager's socket: a real local datagram socket that records the notifications.
//
// Node has no such sockets, so it uses Python, which is installed wherever the addon was built.

import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";

const program = `
import json, socket, sys
address = sys.argv[1]
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(chr(0) + address[1:] if address.startswith("@") else address)
print(json.dumps("bound"), flush=True)
while True:
    print(json.dumps(s.recv(65536).decode()), flush=True)
`;

export class NotifySocket {
  /** One text for each datagram, without the first line of the program. */
  readonly received: string[] = [];
  readonly #child: ChildProcess;
  readonly #waiting = new Set<() => void>();
  #bound = false;

  /** `address`: a path, or "@" and a name. */
  static async open(address: string): Promise<NotifySocket> {
    const child = spawn("python3", ["-c", program, address], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const socket = new NotifySocket(child);
    await socket.#until(() => socket.#bound);
    return socket;
  }

  private constructor(child: ChildProcess) {
    this.#child = child;
    const lines = child.stdout && createInterface({ input: child.stdout });
    lines?.on("line", (line) => {
      const text = String(JSON.parse(line));
      if (this.#bound) this.received.push(text);
      this.#bound = true;
      for (const look of this.#waiting) look();
    });
  }

  /** The first datagram with the line `line`, from index `from` on. */
  async hears(line: RegExp, from = 0): Promise<{ text: string; at: number }> {
    const find = () =>
      this.received.findIndex(
        (text, at) => at >= from && text.split("\n").some((part) => line.test(part)),
      );
    await this.#until(() => find() >= 0);
    const at = find();
    return { text: this.received[at] ?? "", at };
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill("SIGKILL");
    await once(this.#child, "exit");
  }

  #until(isTrue: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = () => {
        if (!isTrue()) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }
}
