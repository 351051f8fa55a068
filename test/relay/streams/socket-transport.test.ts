import { expect, it } from "vitest";
import { SocketConnection } from "../../../src/relay/streams/socket-transport.ts";

it("does not keep the pools of small messages that wait for a slow client", () => {
  const socket = {
    waitingBytes: 0,
    sent: [] as Uint8Array[],
    sendTexts(texts: readonly Uint8Array[]) {
      this.sent.push(...texts);
      return true;
    },
    close() {},
  };
  const connection = new SocketConnection(socket);
  const transport = connection.newTransport(() => {});
  transport.release();
  const pool = Buffer.alloc(8192);
  const messages = [pool.subarray(0, 10).fill("a"), pool.subarray(10, 20).fill("b")];
  const [first = pool, second = pool] = messages;
  transport.send(first);
  transport.flush();
  expect(socket.sent).toEqual([first]);
  socket.waitingBytes = 1 << 20;
  transport.send(second);
  transport.flush();
  expect(transport.waitingBytes).toBe(10);
  second.fill("c"); // the queue has a copy
  socket.waitingBytes = 0;
  connection.flush();
  expect(socket.sent.map((text) => Buffer.from(text).toString())).toEqual([
    "aaaaaaaaaa",
    "bbbbbbbbbb",
  ]);
  expect(socket.sent[1]?.buffer.byteLength).toBe(10);
});
