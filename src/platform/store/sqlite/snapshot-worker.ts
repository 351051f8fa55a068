// The thread of a second connection to an SQLite file, which reads one state of it.
//
// Started by ../snapshot.ts. Its first message, without a request, reports that it is open.

import { parentPort, workerData } from "node:worker_threads";
import {
  DatabaseSync,
  type DatabaseSyncInstance,
  type StatementSyncInstance,
} from "@photostructure/sqlite";
import type { Failure } from "../batch.ts";
import type { Row, SqlValue } from "../driver.ts";
import { checkCommits } from "./commit-count.ts";
import { asStored, failureOf, plainRows, storedParameters, withPlaceholders } from "./database.ts";

export interface SnapshotOptions {
  readonly path: string;
  readonly busyMs: number;
}

export interface SnapshotRequest {
  readonly sql: string;
  readonly params: readonly SqlValue[];
}

export type SnapshotAnswer = { readonly rows: readonly Row[] } | { readonly failure: Failure };

function open({ path, busyMs }: SnapshotOptions): DatabaseSyncInstance {
  checkCommits(path, busyMs);
  const database = new DatabaseSync(path, { timeout: busyMs, readOnly: true, ...asStored });
  try {
    database.exec("PRAGMA trusted_schema = OFF");
    database.exec("BEGIN");
    database.prepare("SELECT COUNT(*) FROM sqlite_master").get(); // the state is that of the first read
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

function serve(options: SnapshotOptions): void {
  const port = parentPort;
  if (!port) throw new Error("expected to be started as a thread");
  const answer = (work: () => readonly Row[]): boolean => {
    let message: SnapshotAnswer;
    try {
      message = { rows: work() };
    } catch (error) {
      message = { failure: failureOf(error) };
    }
    port.postMessage(message);
    return "rows" in message;
  };
  let database: DatabaseSyncInstance | undefined;
  const isOpen = answer(() => {
    database = open(options);
    return [];
  });
  if (!isOpen) {
    port.close();
    return;
  }
  const statements = new Map<string, StatementSyncInstance>();
  port.on("message", (request: SnapshotRequest | "close") => {
    if (request === "close") {
      database?.close();
      port.close();
      return;
    }
    answer(() => {
      const { sql, params } = request;
      // The parameters of these queries are in order.
      const known = statements.get(sql) ?? database?.prepare(withPlaceholders(sql).text);
      if (!known) return [];
      statements.set(sql, known);
      return plainRows(known.all(...storedParameters(params, null)));
    });
  });
}

const options: SnapshotOptions = workerData;
serve(options);
