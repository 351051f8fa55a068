// Floods from forged addresses displace no packet of a connected client: first packets have a receive buffer of
// their own, and the kernel drops packets of no connection.

import { expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { GatewayRun } from "../../support/gateway/gateway.ts";
import { ask, connect, sessionsOf } from "../../support/quic/ingress-clients.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import {
  buildInitialFlood,
  firstPackets,
  floodInitials,
  strayPackets,
} from "../../support/quic/initial-flood.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { tipping } from "../../support/transactions/tipping.ts";

/** More than a receive buffer holds. */
const floodPackets = 20_000;

describeQuic("a flood", () => {
  it.each([
    { of: "first packets", packets: firstPackets },
    { of: "packets of no connection", packets: strayPackets },
  ])("of $of displaces no packet of a connected client", async (kind) => {
    const program = buildInitialFlood(temporaryFolder());
    const gateway = await GatewayRun.open();
    // The gateway's clock is frozen, so it does not replace the process that does not respond.
    const run = await IngressRun.open({ clock: gateway.clock }, gateway);
    const client = await connect(run);
    expect((await ask(client, tipping())).status).toBe(200);
    const { pid } = run.ingress.snapshot().process;
    process.kill(pid ?? 0, "SIGSTOP");
    const { port } = parseEndpoint(run.address());
    const packets = kind.packets(10);
    const flood = { program, port, count: floodPackets, packetsPerSecond: 0, packets };
    expect((await floodInitials(flood)).sent).toBe(floodPackets);
    const responses = Promise.all(
      Array.from({ length: 20 }, (_, i) => ask(client, tipping({ amount: BigInt(i + 2) }))),
    );
    process.kill(pid ?? 0, "SIGCONT");
    expect((await responses).map(({ status }) => status)).toEqual(Array(20).fill(200));
    expect(client.quic.stats().lost).toBe(0);
    expect(sessionsOf(run)).toBe(1);
  });
});
