// A client of the WebSocket on /relayb: sends transactions and keeps the responses.

import { once } from "node:events";
import Client from "ws";
import { closing } from "../closing.ts";
import { until } from "../network/udp-receiver.ts";
import { readResponse } from "../quic/response-frames.ts";
import type { GatewayRun } from "./gateway.ts";

export class SubmissionClient {
  readonly frames: ReturnType<typeof readResponse>[] = [];
  readonly texts: string[] = [];
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #client: Client;

  static async open(run: GatewayRun, query = "api-key=good&responses=true", path = "/relayb") {
    const client = new Client(run.url(`${path}?${query}`).replace("http", "ws"));
    const socket = new SubmissionClient(client);
    await once(client, "open");
    return closing(socket);
  }

  private constructor(client: Client) {
    this.#client = client;
    client.on("message", (data: Buffer, isBinary) => {
      if (isBinary) this.frames.push(readResponse(data));
      else this.texts.push(data.toString());
    });
    this.closed = once(client, "close").then(([code, reason]) => ({ code, reason: `${reason}` }));
  }

  send(message: Uint8Array | string): void {
    this.#client.send(message);
  }

  /** The next response. */
  async ask(message: Uint8Array): Promise<ReturnType<typeof readResponse> | undefined> {
    const count = this.frames.length;
    this.send(message);
    await until(() => this.frames.length > count, "a response");
    return this.frames[count];
  }

  close(): void {
    this.#client.terminate();
  }
}
