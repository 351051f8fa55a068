// Clients with link-local IPv6 addresses, which the confined process cannot answer.

import { createSocket } from "node:dgram";
import { networkInterfaces } from "node:os";
import { expect, it } from "vitest";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { logged } from "../http/clients.ts";

/** An address of this machine with its zone. Packets to it stay on the machine. */
const linkLocal = Object.entries(networkInterfaces())
  .flatMap(([name, addresses = []]) =>
    addresses
      .filter(({ family, address }) => family === "IPv6" && address.startsWith("fe80:"))
      .map(({ address }) => `${address}%${name}`),
  )
  .at(0);

describeQuic("packets from a link-local address", () => {
  it.skipIf(linkLocal === undefined)("are counted, and reported with the remedy", async () => {
    const { log, lines } = logged();
    const listeners = [{ address: "[::]:0", isProtected: false, isSwqosOnly: false }];
    const run = await IngressRun.open({ listeners, log });
    const port = Number(run.address().split(":").at(-1));
    const socket = createSocket("udp6");
    closing({ close: () => void socket.close() });
    socket.send(Buffer.alloc(1200, 0xc0), port, linkLocal);
    await until(() => lines.length > 0, "the warning");
    expect(lines[0]).toMatchObject({
      level: "warn",
      msg: expect.stringContaining(
        "packets from link-local IPv6 addresses are ignored; clients need a global or unique local address",
      ),
    });
    await until(() => run.ingress.snapshot().counts?.unknownPackets === 1, "the count");
    expect(run.ingress.snapshot().process.ends).toMatchObject({ exited: 0 });
  });
});
