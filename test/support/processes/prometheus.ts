// Prometheus's own programs from Debian's package: promtool, and a server on loopback.

import { type ChildProcess, execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { closing } from "../closing.ts";
import { freePort } from "../network/free-ports.ts";
import { temporaryFolder } from "../temporary-folder.ts";

export const hasPrometheus =
  spawnSync("promtool", ["--version"]).status === 0 &&
  spawnSync("prometheus", ["--version"]).status === 0;

/** A file of the examples. */
export function exampleFile(name: string): string {
  return fileURLToPath(new URL(`../../../examples/production/${name}`, import.meta.url));
}

/** Its output (both streams), and whether it succeeded. */
export function promtool(
  args: readonly string[],
  input = "",
): Promise<{ readonly isContent: boolean; readonly text: string }> {
  return new Promise((resolve) => {
    const child = execFile("promtool", [...args], (error, stdout, stderr) => {
      resolve({ isContent: error === null, text: stdout + stderr });
    });
    child.stdin?.end(input);
  });
}

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
  readonly value: readonly [time: number, value: string];
}

export class Prometheus {
  readonly #child: ChildProcess;
  readonly #url: string;
  #output = "";

  /** Starts with a configuration file; its data is temporary. */
  static async start(configFile: string): Promise<Prometheus> {
    const port = await freePort();
    const folder = temporaryFolder();
    const child = spawn(
      "prometheus",
      [
        `--config.file=${configFile}`,
        `--storage.tsdb.path=${join(folder, "data")}`,
        `--web.listen-address=127.0.0.1:${port}`,
        "--log.level=warn",
      ],
      { stdio: ["ignore", "ignore", "pipe"] },
    );
    const prometheus = closing(new Prometheus(child, `http://127.0.0.1:${port}`));
    await prometheus.until(async () => (await prometheus.#get("/-/ready")).ok, "it is ready");
    return prometheus;
  }

  private constructor(child: ChildProcess, url: string) {
    this.#child = child;
    this.#url = url;
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#output += chunk.toString();
    });
  }

  /** Polls every 100 ms; fails if the program ends. */
  async until(holds: () => Promise<boolean>, what: string): Promise<void> {
    while (!(await holds().catch(() => false))) {
      if (this.#child.exitCode !== null) throw new Error(`ended before ${what}: ${this.#output}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  /** Series of an instant query. Rejects with the server's error. */
  async query(expression: string): Promise<readonly Series[]> {
    const response = await this.#get(`/api/v1/query?query=${encodeURIComponent(expression)}`);
    const body:
      | { readonly status: "success"; readonly data: { readonly result: readonly Series[] } }
      | { readonly status: "error"; readonly error: string } = JSON.parse(await response.text());
    if (body.status === "error") throw new Error(`${expression}: ${body.error}`);
    return body.data.result;
  }

  /** Rules with their health: "ok" after an evaluation without error. */
  async rules(): Promise<readonly { name: string; health: string; lastError?: string }[]> {
    const response = await this.#get("/api/v1/rules");
    const {
      data,
    }: {
      data: { groups: { rules: { name: string; health: string; lastError?: string }[] }[] };
    } = JSON.parse(await response.text());
    return data.groups.flatMap(({ rules }) => rules);
  }

  async close(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const ended = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await ended;
  }

  #get(path: string): Promise<Response> {
    return fetch(this.#url + path);
  }
}
