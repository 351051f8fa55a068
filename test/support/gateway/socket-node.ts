// A node's WebSocket controlled by the test, with valid and invalid behaviour.

import type { AddressInfo } from "node:net";
import { type WebSocket, WebSocketServer } from "ws";
import { closing } from "../closing.ts";

export interface Question {
  readonly id: number;
  readonly method: string;
}

export class SocketNode {
  readonly requests: Question[] = [];
  readonly clients: WebSocket[] = [];
  readonly #server: WebSocketServer;

  private constructor(autoPong: boolean, answer: (client: WebSocket, question: Question) => void) {
    this.#server = new WebSocketServer({ host: "127.0.0.1", port: 0, autoPong });
    this.#server.on("connection", (client) => {
      this.clients.push(client);
      client.on("error", () => undefined);
      client.on("message", (data: Buffer) => {
        const question: Question = JSON.parse(data.toString());
        this.requests.push(question);
        answer(client, question);
      });
    });
  }

  static async open(
    answer: (client: WebSocket, question: Question) => void,
    autoPong = true,
  ): Promise<SocketNode> {
    const node = new SocketNode(autoPong, answer);
    await new Promise((resolve) => node.#server.once("listening", resolve));
    return closing(node);
  }

  get url(): string {
    const address: AddressInfo | string | null = this.#server.address();
    if (address === null || typeof address === "string")
      throw new Error("expected a port, got none");
    return `ws://127.0.0.1:${address.port}`;
  }

  close(): void {
    for (const client of this.clients) client.terminate();
    this.#server.close();
  }
}

export function answerWith(client: WebSocket, { id }: Question, result = "1"): void {
  client.send(`{"jsonrpc":"2.0","result":${result},"id":${id}}`);
}

export const notification = (subscription: string, result: string, method = "slotNotification") =>
  `{"jsonrpc":"2.0","method":"${method}","params":{"result":${result},"subscription":${subscription}}}`;
