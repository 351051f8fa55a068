// Offers and their claims, without the process of the connections.

import { once } from "node:events";
import { closeSync } from "node:fs";
import { connect, createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { descriptorOf } from "../../../src/core/socket-descriptor.ts";
import { FastPath } from "../../../src/gateway/fast-path/fast-path.ts";
import { StreamOffers } from "../../../src/gateway/fast-path/stream-offers.ts";
import { native } from "../../../src/relay/data-plane/native.ts";
import { closing } from "../../support/closing.ts";
import { tipWallet } from "../../support/gateway/gateway.ts";
import { signatureOf, transfer } from "./fast-caller.ts";

const foreverNs = 2n ** 62n;

/** A fast path with one lent connection, and its channel without a process. */
async function openChannel(): Promise<{ fastPath: FastPath; offers: StreamOffers; fd: number }> {
  const fastPath = closing(new FastPath({ warn: () => undefined }));
  const tipAddresses = [tipWallet.publicKey.toBytes()];
  fastPath.setRules({ tipAddresses, dontFrontPrefixes: [], minimumTipLamports: 10_000n });
  fastPath.allow("key", 100);
  const server = createServer().listen(0, "127.0.0.1");
  closing({ close: () => void server.close() });
  await once(server, "listening");
  const port = Reflect.get(Object(server.address()), "port");
  const socket = connect({ host: "127.0.0.1", port: Number(port) });
  await once(socket, "connect");
  closing({ close: () => void socket.destroy() });
  const route = fastPath.openRoute();
  route?.setForm({
    head: "POST / HTTP/1.1\r\nContent-Length: ",
    beforeId: "",
    beforeText: " ",
    afterText: "",
    minimumTipLamports: 0n,
    transactionBytesMax: 1232,
  });
  route?.lend(descriptorOf(socket) ?? -1, foreverNs);
  const offers = new StreamOffers(fastPath);
  return { fastPath, offers, fd: offers.open() ?? -1 };
}

/** The same after one offer was sent. */
async function openTaken(wanted: () => void = () => undefined) {
  const channel = await openChannel();
  const connection = channel.offers.connection(7, wanted);
  connection.learn({ keyId: "key", untilNs: foreverNs });
  connection.learn({ keyId: "key", untilNs: foreverNs });
  expect(native().writeOffer(channel.fd, 1, 7, transfer(1))).toBe(true);
  await expect.poll(() => channel.fastPath.snapshot().taken).toBe(1);
  return { ...channel, connection };
}

describe("an offer that no stream follows", () => {
  it.each(["while the process runs", "when the process has ended"])(
    "is abandoned %s",
    async (when) => {
      const wanted: string[] = [];
      const { fastPath, offers, fd } = await openTaken(() => wanted.push("wanted"));
      expect(wanted).toEqual(["wanted"]);
      expect(fastPath.snapshot()).toMatchObject({ unclaimed: 1, abandoned: 0 });
      if (when === "while the process runs") offers.discard({ sequence: 1, bytes: transfer(1) });
      else offers.end();
      expect(fastPath.snapshot()).toMatchObject({ unclaimed: 0, abandoned: 1 });
      closeSync(fd);
    },
  );

  it("leaves the sends of streams that are handled to them", async () => {
    const { fastPath, offers, connection, fd } = await openTaken();
    const stream = connection.stream({ sequence: 1, bytes: transfer(1) });
    expect(stream.isTaken).toBe(true);
    offers.end();
    expect(fastPath.snapshot()).toMatchObject({ unclaimed: 0, abandoned: 0 });
    expect(stream.isTaken).toBe(true);
    expect(stream.claim()?.signature).toBe(signatureOf(transfer(1)));
    stream.settle();
    expect(fastPath.snapshot().abandoned).toBe(1);
    closeSync(fd);
  });

  it("does not belong to the stream of another transaction", async () => {
    const { fastPath, connection, fd } = await openTaken();
    const other = Buffer.from(transfer(1));
    other.writeUInt8((other.at(-1) ?? 0) ^ 1, other.length - 1);
    expect(connection.stream({ sequence: 1, bytes: other }).claim()).toBeNull();
    expect(fastPath.snapshot()).toMatchObject({ unclaimed: 0, abandoned: 1 });
    closeSync(fd);
  });

  it("comes from no connection that has ended", async () => {
    const { fastPath, offers, fd } = await openChannel();
    const connection = offers.connection(7, () => undefined);
    connection.closed();
    connection.learn({ keyId: "key", untilNs: foreverNs });
    expect(native().writeOffer(fd, 1, 7, transfer(1))).toBe(true);
    // An offer whose number is not ascending counts as late.
    expect(native().writeOffer(fd, 0, 7, transfer(1))).toBe(true);
    await expect.poll(() => fastPath.snapshot().late).toBe(1);
    expect(fastPath.snapshot().taken).toBe(0);
    closeSync(fd);
  });
});
