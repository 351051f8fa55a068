// Clients for tests of the HTTP server: one for arbitrary bytes, and small helpers.

import { connect, type Socket } from "node:net";
import { beforeAll, describe } from "vitest";
import { messageOf } from "../../../src/core/errors.ts";
import { createLogger, type Logger } from "../../../src/core/log.ts";
import { openEngine } from "../../../src/gateway/http/open-engine.ts";
import { HttpServer } from "../../../src/gateway/http/server.ts";
import {
  type EngineName,
  engineNames,
  type HttpServerOptions,
} from "../../../src/gateway/http/types.ts";
import { closing } from "../../support/closing.ts";
import { turnsUntil } from "../../support/turns-until.ts";

/** Every suite of the HTTP server runs on both engines, one after the other. */
let engine: EngineName = "node";

/** Why an engine cannot run on this version of Node; null: it can. */
async function engineProblem(name: EngineName): Promise<string | null> {
  try {
    const { app } = await openEngine(name, { keepAliveSeconds: 90 });
    app.close();
    return null;
  } catch (error) {
    return messageOf(error);
  }
}

const problems = await Promise.all(engineNames.map(engineProblem));

/** Runs `suite` on every engine, and skips an engine without a binary by name. */
export function onEveryEngine(suite: (name: EngineName) => void): void {
  for (const [index, name] of engineNames.entries()) {
    const problem = problems[index] ?? null;
    const title = `on the engine ${name}${problem === null ? "" : ` (${problem})`}`;
    describe.skipIf(problem !== null)(title, () => {
      beforeAll(() => {
        engine = name;
      });
      suite(name);
    });
  }
}

/** HttpServer.open with the engine of the running suite. */
export function openServer(options: HttpServerOptions, log?: Logger): Promise<HttpServer> {
  return HttpServer.open({ engine, ...options }, log);
}

/** Opens a server on its own port and closes it after the test. */
export async function serve(
  options: Partial<HttpServerOptions> & Pick<HttpServerOptions, "handle">,
  log?: Logger,
): Promise<HttpServer> {
  return closing(
    await openServer({ listen: ["127.0.0.1:0"], bodyBytesMax: () => 1_000_000, ...options }, log),
  );
}

export function urlOf(server: HttpServer, path = "/"): string {
  return `http://${server.addresses[0]}${path}`;
}

/** A logger and its lines. */
export function logged(): { log: Logger; lines: Record<string, unknown>[] } {
  const lines: Record<string, unknown>[] = [];
  const log = createLogger({ stream: { write: (line: string) => lines.push(JSON.parse(line)) } });
  return { log, lines };
}

/** A promise with its settling functions. */
export function deferred<T>(): {
  promise: Promise<T>;
  resolve: (value: T) => void;
  reject: (reason: Error) => void;
} {
  let resolve: (value: T) => void = () => undefined;
  let reject: (reason: Error) => void = () => undefined;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** A TCP connection that records received text (latin1). */
export class RawClient {
  readonly socket: Socket;
  received = "";
  isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (bytes) => {
      this.received += bytes.toString("latin1");
    });
    socket.on("error", () => undefined); // these tests cause resets
    socket.on("close", () => {
      this.isClosed = true;
    });
  }

  /** `localAddress`: the client's; all of 127.0.0.0/8 are this machine. */
  static async open(
    server: HttpServer,
    localAddress?: string,
    host = "127.0.0.1",
  ): Promise<RawClient> {
    const port = Number(server.addresses[0]?.split(":").at(-1));
    const client = new RawClient(connect({ host, port, ...(localAddress && { localAddress }) }));
    await new Promise((resolve, reject) => {
      client.socket.once("connect", resolve);
      client.socket.once("error", reject);
    });
    return closing(client);
  }

  /** Settles when the kernel accepted the bytes, or the connection closed. */
  write(bytes: string | Uint8Array): Promise<void> {
    return new Promise((resolve) => {
      this.socket.write(bytes, () => resolve());
    });
  }

  async readUntil(pattern: RegExp): Promise<string> {
    await turnsUntil(() => pattern.test(this.received) || this.isClosed);
    return this.received;
  }

  async closed(): Promise<string> {
    await turnsUntil(() => this.isClosed);
    return this.received;
  }

  /** Received statuses in order. */
  get statuses(): number[] {
    return [...this.received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map((match) => Number(match[1]));
  }

  close(): void {
    this.socket.destroy();
  }
}
