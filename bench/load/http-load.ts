// Callers and a partner on loopback: the native program's scenario `http`, driven by commands.

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { type Line, numberOf, parseLine } from "../report/lines.ts";

export interface LoadPlan {
  readonly port: number;
  readonly path: string;
  readonly connections: number;
  readonly seconds: number;
  /** 0: as fast as answers come. */
  readonly ratePerSecond: number;
  /** Process whose CPU time is counted. */
  readonly pid: number;
  /** API key; empty: none. */
  readonly credential: string;
}

export interface LoadResult {
  readonly answered: number;
  readonly accepted: number;
  readonly limited: number;
  readonly refused: number;
  readonly broken: number;
  readonly seconds: number;
  readonly cpuNs: number;
  /** Number of sent transactions that reached the partner. */
  readonly arrived: number;
  readonly p50Ns: number;
  readonly p99Ns: number;
  readonly routeP50Ns: number;
  readonly routeP99Ns: number;
  /** From the moment when a connection was free for the request. */
  readonly writtenToRouteP50Ns: number;
  readonly writtenToRouteP99Ns: number;
}

const answerMs = 120_000;

/** Reads lines of a child's standard output, one for each command. */
export class LineReader {
  readonly #lines: string[] = [];
  readonly #waiting: ((text: string | undefined) => void)[] = [];
  #ended = false;

  constructor(child: ChildProcess) {
    if (!child.stdout) throw new Error("expected a child with a standard output, got none");
    const reader = createInterface({ input: child.stdout });
    reader.on("line", (text) => {
      const waiter = this.#waiting.shift();
      if (waiter) waiter(text);
      else this.#lines.push(text);
    });
    reader.on("close", () => {
      this.#ended = true;
      for (const waiter of this.#waiting.splice(0)) waiter(undefined);
    });
  }

  async next(): Promise<Line> {
    const text = this.#lines.shift() ?? (this.#ended ? undefined : await this.#wait());
    if (text === undefined) throw new Error("expected a line, but the program ended");
    return parseLine(text);
  }

  #wait(): Promise<string | undefined> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error("no line in two minutes")), answerMs);
      this.#waiting.push((text) => {
        clearTimeout(timer);
        resolve(text);
      });
    });
  }
}

export class HttpLoad {
  readonly #child: ChildProcess;
  readonly #lines: LineReader;
  readonly sinkPort: number;

  private constructor(child: ChildProcess, lines: LineReader, sinkPort: number) {
    this.#child = child;
    this.#lines = lines;
    this.sinkPort = sinkPort;
  }

  static async open(program: string): Promise<HttpLoad> {
    const child = spawn(program, ["http", "--loopback"], { stdio: ["pipe", "pipe", "inherit"] });
    const lines = new LineReader(child);
    await lines.next(); // every scenario prints these lines about the machine
    return new HttpLoad(child, lines, numberOf(await lines.next(), "port"));
  }

  /** Signs this many new transactions and discards those that were not sent yet. */
  async make(count: number, tip: Uint8Array, paddingBytes: number): Promise<void> {
    const lifetime = Buffer.alloc(32, 9).toString("hex");
    const tipText = Buffer.from(tip).toString("hex");
    const line = await this.#ask(`make ${count} ${tipText} ${lifetime} ${paddingBytes}`);
    if (numberOf(line, "count") !== count) throw new Error("transactions could not be signed");
  }

  async load(name: string, plan: LoadPlan): Promise<LoadResult> {
    const { port, path, connections, seconds, ratePerSecond, pid, credential } = plan;
    const line = await this.#ask(
      `load ${name} ${port} ${path} ${connections} ${seconds} ${ratePerSecond} ${pid} ${credential}`,
    );
    return {
      answered: numberOf(line, "answered"),
      accepted: numberOf(line, "accepted"),
      limited: numberOf(line, "limited"),
      refused: numberOf(line, "refused"),
      broken: numberOf(line, "broken"),
      seconds: numberOf(line, "elapsed_ns") / 1e9,
      cpuNs: numberOf(line, "cpu_ns"),
      arrived: numberOf(line, "arrived"),
      p50Ns: numberOf(line, "p50_ns"),
      p99Ns: numberOf(line, "p99_ns"),
      routeP50Ns: numberOf(line, "route_p50_ns"),
      routeP99Ns: numberOf(line, "route_p99_ns"),
      writtenToRouteP50Ns: numberOf(line, "written_to_route_p50_ns"),
      writtenToRouteP99Ns: numberOf(line, "written_to_route_p99_ns"),
    };
  }

  /** Writes the next transactions to a file, in base64, one for each line. */
  async exportNext(count: number, file: string): Promise<void> {
    const line = await this.#ask(`export ${count} ${file}`);
    if (numberOf(line, "count") !== count) throw new Error("transactions could not be exported");
  }

  /**
   * Writes which transactions reached the partner since the last load or export, and when. Waits until
   * `expected` have arrived, or until all submissions have ended.
   */
  async arrivals(file: string, expected: number): Promise<void> {
    await this.#ask(`arrivals ${file} ${expected}`);
  }

  /** Writes when each request of the last load began; see http_scenario.cc. */
  async writeBegun(path: string): Promise<void> {
    await this.#ask(`begun ${path}`);
  }

  /** Verifications per second of this many threads that do nothing else. */
  async checksPerSecond(count: number, threads: number): Promise<number> {
    const line = await this.#ask(`checks ${count} ${threads}`);
    return (numberOf(line, "count") * 1e9) / numberOf(line, "elapsed_ns");
  }

  close(): void {
    this.#child.kill("SIGKILL");
  }

  #ask(command: string): Promise<Line> {
    this.#child.stdin?.write(`${command}\n`);
    return this.#lines.next();
  }
}
