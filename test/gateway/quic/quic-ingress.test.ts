// The QUIC ingress with a client that uses the same library.

import { describe, expect, it } from "vitest";
import { newEcdsaCredentials } from "../../../src/gateway/tpu/certificate.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import { QuicClient } from "../../support/quic/quic-client.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { tipping } from "../../support/transactions/tipping.ts";

describe("smoke", () => {
  it("submits", async () => {
    const run = await IngressRun.open();
    const client = await QuicClient.open(run.address(), {
      credentials: newEcdsaCredentials("good"),
      protocol: "shredway-tpu",
    });
    void client.ended.then((end) => console.log("end", end));
    await client.established;
    client.send(tipping());
    await until(() => run.gateway.submitted.length === 1, "a submission", 10000).catch((e) => {
      console.log(run.ingress.snapshot());
      throw e;
    });
    console.log(run.gateway.submitted[0], run.ingress.snapshot());
    expect(1).toBe(1);
  });
});
