// A PostgreSQL server for all tests of a block: started before the first, removed after the last.

import { afterAll, afterEach, beforeAll } from "vitest";
import { PostgresServer } from "../../support/postgres/postgres.ts";
import type { Files } from "./files.ts";

/**
 * After each test, resumes the server and closes the resources of `files`. Returns a function that
 * returns the server.
 */
export function serverOfBlock(files: Files): () => PostgresServer {
  let started: PostgresServer | undefined;
  beforeAll(async () => {
    started = await PostgresServer.start();
  });
  afterEach(async () => {
    started?.resume();
    await files.clean();
  });
  afterAll(() => started?.remove());
  return () => {
    if (started) return started;
    throw new Error("expected a server that was started");
  };
}
