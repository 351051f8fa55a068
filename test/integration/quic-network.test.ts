// The QUIC ingress of a complete sandbox on bad links: loss, another order, and a path of 1,280 bytes, over both
// IP families. Every acknowledged transaction lands once.

import { expect, it } from "vitest";
import { parseEndpoint } from "../../src/core/addresses/addresses.ts";
import { closing } from "../support/closing.ts";
import { type LinkQuality, LossyLink } from "../support/network/lossy-link.ts";
import { runningSandbox } from "../support/processes/sandbox.ts";
import { describeQuic } from "../support/quic/quic-server.ts";
import { expectEachLandedOnce, SandboxCustomer } from "../support/quic/sandbox-customer.ts";

/** Payload of a path of 1,280 bytes over IPv6. */
const narrowBytes = 1232;
const rounds = 5;
const submissionsPerRound = 12;

const links: readonly (readonly [name: string, quality: LinkQuality])[] = [
  [
    "a fifth of all packets is lost, and the others change their order",
    { loss: 0.2, delayMs: 2, jitterMs: 20 },
  ],
  ["the path carries 1,280 bytes", { loss: 0, bytesMax: narrowBytes }],
];

describeQuic.each([
  ["IPv4", "127.0.0.1:0"],
  ["IPv6", "[::1]:0"],
])("over %s", (_family, quic) => {
  it.each(links)("%s, and each acknowledged transaction lands once", async (_name, quality) => {
    const sandbox = await runningSandbox("127.0.0.1:0", { quic });
    const { port } = parseEndpoint(sandbox.quicAddresses[0] ?? "");
    const target = quic.startsWith("[") ? ({ host: "::1", port } as const) : port;
    const link = closing(await LossyLink.open(target, quality));
    const customer = await SandboxCustomer.connect(sandbox, {
      address: `127.0.0.1:${link.address.port}`,
      packetBytesMax: narrowBytes,
    });
    for (let round = 0; round < rounds; round++) {
      await Promise.all(Array.from({ length: submissionsPerRound }, () => customer.submit()));
    }
    // A stream whose packets were lost several times takes too long, and the customer submits again.
    while (customer.acknowledged.size < rounds * submissionsPerRound) await customer.submit();
    const lateness = /^value_invalid: stream: expected its end within 750 ms/;
    const others = customer.refused.filter(
      ({ body }) => quality.loss === 0 || !lateness.test(body),
    );
    expect(others).toEqual([]);
    expect(link.tooLong).toBe(0);
    if (quality.loss > 0) expect(link.lost).toBeGreaterThan(0);
    await expectEachLandedOnce(sandbox.gatewayUrl, customer.acknowledged);
  });
});
