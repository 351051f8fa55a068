// Clients that cancel requests: each cancelled stream makes room for the next one.

import { expect, it } from "vitest";
import { connectQuic, type QuicClient } from "../../../src/client/quic/index.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { connect } from "../../support/quic/ingress-clients.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { tippingV0 } from "../../support/transactions/tipping.ts";

/** More than three times the concurrent streams of a connection. */
const cancelledStreams = 200;
/** Below the concurrent streams of a connection. */
const batchStreams = 50;

/** No submission is answered before the returned function is called. */
function holdSubmissions({ gateway }: IngressRun): () => void {
  let settle: () => void = () => undefined;
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });
  gateway.submit = () => settled;
  return settle;
}

/** A submission that is aborted after the gateway has it. */
async function cancelled({ gateway }: IngressRun, client: QuicClient, i: number): Promise<void> {
  const controller = new AbortController();
  const sent = client.send(tippingV0({ amount: BigInt(i) }), { signal: controller.signal });
  const aborted = expect(sent).rejects.toThrow("enough");
  await until(() => gateway.submitted.length === i, `transaction ${i}`);
  controller.abort(new Error("enough"));
  await aborted;
}

describeQuic("a connection with many cancelled requests", () => {
  it.each([
    ["shredway-tpu", true],
    ["astralane-tpu", false],
  ])("on %s still accepts both kinds of streams", async (protocol, hasResponses) => {
    const run = await IngressRun.open();
    const client = await connect(run, { protocol });
    const { submitted } = run.gateway;
    for (let i = 1; i <= cancelledStreams; i++) {
      await until(() => client.requestCredit > 0, `credit for stream ${i}`);
      client.cancelledRequest(tippingV0({ amount: BigInt(i) }));
      await until(() => submitted.length === i, `transaction ${i}`);
    }
    client.send(tippingV0({ amount: 1001n }));
    await until(() => submitted.length === cancelledStreams + 1, "the unidirectional stream");
    const response = await client.request(tippingV0({ amount: 1002n }));
    expect(response.length > 0).toBe(hasResponses);
    expect(submitted.length).toBe(cancelledStreams + 2);
  });

  it("of QuicClient still gets a signature", async () => {
    const run = await IngressRun.open();
    const client = closing(
      await connectQuic({ address: run.address(), apiKey: "good", timeoutMs: 60_000 }),
    );
    for (let first = 1; first <= cancelledStreams; first += batchStreams) {
      const settle = holdSubmissions(run);
      for (let i = first; i < first + batchStreams; i++) await cancelled(run, client, i);
      // This request also acknowledges the service's resets, so that it discards the streams.
      await expect(client.send(Buffer.from([1]))).rejects.toMatchObject({ httpStatus: 400 });
      settle();
    }
    run.gateway.submit = () => Promise.resolve();
    expect(await client.send(tippingV0({ amount: 1001n }))).toMatch(/^[1-9A-Za-z]{64,}$/);
  });
});
