// The cluster process (cluster-process.ts), as the soak test uses it: commands in order, one answer each.

import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { ClusterAnswer, ClusterCommand, ClusterReady } from "./cluster-messages.ts";

const program = fileURLToPath(new URL("cluster-process.ts", import.meta.url));

export class Cluster {
  readonly ready: ClusterReady;
  readonly #child: ChildProcess;
  readonly #waiting: ((answer: ClusterAnswer) => void)[];

  private constructor(
    child: ChildProcess,
    ready: ClusterReady,
    waiting: ((answer: ClusterAnswer) => void)[],
  ) {
    this.#child = child;
    this.ready = ready;
    this.#waiting = waiting;
  }

  static async open(folder: string): Promise<Cluster> {
    const child = fork(program, [folder], { execArgv: ["--import", "tsx"] });
    const waiting: ((answer: ClusterAnswer) => void)[] = [];
    child.on("message", (answer: ClusterAnswer) => waiting.shift()?.(answer));
    const ready = await new Promise<ClusterAnswer>((resolve, reject) => {
      waiting.push(resolve);
      child.once("exit", (code) => reject(new Error(`the cluster process ended with ${code}`)));
    });
    if (ready.kind !== "ready") throw new Error(`expected "ready", got ${ready.kind}`);
    return new Cluster(child, ready, waiting);
  }

  do(command: ClusterCommand): Promise<ClusterAnswer> {
    return new Promise((resolve, reject) => {
      if (!this.#child.connected) return reject(new Error("the cluster process ended"));
      this.#waiting.push(resolve);
      this.#child.send(command);
    });
  }

  async count(): Promise<{ readonly sent: number; readonly slot: number }> {
    const answer = await this.do({ do: "count" });
    if (answer.kind !== "count") throw new Error(`expected "count", got ${answer.kind}`);
    return answer;
  }

  close(): void {
    this.#child.kill("SIGKILL");
  }
}
