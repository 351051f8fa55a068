// A listening socket that is reserved until a server takes it over.

import { once } from "node:events";
import { connect, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { reserveAddress } from "../../../src/tools/sandbox/reserved-address.ts";
import { closing } from "../../support/closing.ts";

async function reserved(preferred: string) {
  const one = await reserveAddress(preferred);
  closing({ close: () => void one.socket.close() });
  return one;
}

describe("a reserved address", () => {
  it("is the preferred one, or another port if that is in use", async () => {
    const first = await reserved("127.0.0.1:0");
    const second = await reserved(first.address);
    expect(second.address).toMatch(/^127\.0\.0\.1:\d+$/);
    expect(second.address).not.toBe(first.address);
    first.socket.close();
    await once(first.socket, "close");
    expect((await reserved(first.address)).address).toBe(first.address);
  });

  it("names the loopback interface if the machine lacks the IP address", async () => {
    await expect(reserveAddress("192.0.2.1:0")).rejects.toMatchObject({
      reason: "http_open",
      message: expect.stringMatching(/^cannot listen on 192\.0\.2\.1: .*; expected the loopback/),
    });
  });

  it("refuses connections until a server takes it over, and is free after that server", async () => {
    const { address, socket } = await reserved("127.0.0.1:0");
    const port = Number(address.split(":")[1]);
    await once(connect(port, "127.0.0.1").resume(), "close");
    const server = createServer((one) => one.end("served"));
    closing({ close: () => void server.close() });
    server.listen(socket);
    const client = connect(port, "127.0.0.1");
    expect(String((await once(client, "data"))[0])).toBe("served");
    client.destroy();
    server.close();
    await once(server, "close");
    socket.close(); // without effect
    expect((await reserved(address)).address).toBe(address);
  });
});
