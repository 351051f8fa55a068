// The thread of one SQLite file: receives batches and returns results, one at a time.
//
// Started by driver.ts. It waits for the disk, so the event loop does not. If the file cannot be opened,
// it answers "refused" and ends.

import { parentPort, workerData } from "node:worker_threads";
import type { Batch, BatchResult, Failure } from "../batch.ts";
import { failureOf, SqliteDatabase, type SqliteOptions } from "./database.ts";

export type WorkerRequest =
  | { readonly kind: "close" }
  | { readonly kind: "batch"; readonly batch: Batch };

export type WorkerAnswer =
  | { readonly kind: "opened"; readonly foreignVersion: number }
  | { readonly kind: "refused"; readonly failure: Failure }
  | { readonly kind: "result"; readonly result: BatchResult }
  /** The last message; `failure` if the file was not closed properly. */
  | { readonly kind: "closed"; readonly failure: Failure | null };

function serve(options: SqliteOptions): void {
  const port = parentPort;
  if (!port) throw new Error("expected to be started as a thread");
  const answer = (message: WorkerAnswer): void => port.postMessage(message);
  let database: SqliteDatabase;
  try {
    database = new SqliteDatabase(options);
  } catch (error) {
    answer({ kind: "refused", failure: failureOf(error) });
    return;
  }
  port.on("message", (request: WorkerRequest) => {
    if (request.kind === "batch") {
      answer({ kind: "result", result: database.run(request.batch) });
      return;
    }
    let failure: Failure | null = null;
    try {
      database.close();
    } catch (error) {
      failure = failureOf(error);
    }
    answer({ kind: "closed", failure });
    port.close();
  });
  answer({ kind: "opened", foreignVersion: database.foreignVersion() });
}

const options: SqliteOptions = workerData;
serve(options);
