// The simulated disk: real SQLite on a real file, in this thread, with commits at simulated times.
//
// The driver sees the thread that it expects. A batch waits for the disk before it is committed; a crash
// loses what waits, and nothing else.

import { EventEmitter } from "node:events";
import type { Worker } from "node:worker_threads";
import type { Timer } from "../../src/core/clock.ts";
import { SqliteDatabase, type SqliteOptions } from "../../src/platform/store/sqlite/database.ts";
import type { WorkerAnswer, WorkerRequest } from "../../src/platform/store/sqlite/worker.ts";
import type { SimulatedTime } from "./simulated-time.ts";

const commitNs = 500_000;
const answerNs = 50_000;

export class SimulatedDisk {
  readonly #time: SimulatedTime;
  readonly #threads = new Set<DiskThread>();
  /** In addition to the usual duration of a commit. */
  delayNs = 0;

  constructor(time: SimulatedTime) {
    this.#time = time;
  }

  /** For SqliteDriverOptions.start. */
  readonly start = (options: SqliteOptions): Worker => {
    const thread = new DiskThread(this.#time, options, () => commitNs + this.delayNs);
    this.#threads.add(thread);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the driver uses these members only
    return thread as unknown as Worker;
  };

  /** All processes are killed. */
  crash(): void {
    for (const thread of this.#threads) thread.kill();
    this.#threads.clear();
  }
}

class DiskThread extends EventEmitter {
  readonly #time: SimulatedTime;
  readonly #delayNs: () => number;
  readonly #waiting = new Set<Timer>();
  readonly #database: SqliteDatabase;
  #isOver = false;

  constructor(time: SimulatedTime, options: SqliteOptions, delayNs: () => number) {
    super();
    this.#time = time;
    this.#delayNs = delayNs;
    this.#database = new SqliteDatabase(options);
    const foreignVersion = this.#database.foreignVersion();
    this.#later(answerNs, () => this.#answer({ kind: "opened", foreignVersion }));
  }

  postMessage(request: WorkerRequest): void {
    this.#later(this.#delayNs(), () => {
      if (request.kind === "batch") {
        const result = this.#database.run(request.batch);
        this.#later(answerNs, () => this.#answer({ kind: "result", result }));
        return;
      }
      this.#close();
      this.#answer({ kind: "closed", failure: null });
      this.emit("exit", 0);
    });
  }

  kill(): void {
    for (const timer of this.#waiting) timer.cancel();
    this.#waiting.clear();
    this.removeAllListeners();
    this.#close();
  }

  #close(): void {
    if (!this.#isOver) this.#database.close();
    this.#isOver = true;
  }

  #answer(answer: WorkerAnswer): void {
    this.emit("message", answer);
  }

  #later(delayNs: number, action: () => void): void {
    const timer = this.#time.at(this.#time.nowNs + delayNs, () => {
      this.#waiting.delete(timer);
      action();
    });
    this.#waiting.add(timer);
  }
}
