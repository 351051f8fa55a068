// Views of connections over QUIC: rates, order, and what an account sees.

import { expect, it } from "vitest";
import type { ConnectionSnapshot } from "../../../src/gateway/accounts/connection-records.ts";
import { ConnectionViews } from "../../../src/platform/portal/connection-views.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { connect } from "../../support/quic/ingress-clients.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";
import { tipping } from "../../support/transactions/tipping.ts";

const secondNs = 1_000_000_000n;
const none = { accepted: 0, rejected: 0, rateLimited: 0, dropped: 0 } as const;

function snapshot(accepted: number, rateLimitedOfBob: number): ConnectionSnapshot {
  const shared = {
    transport: "quic",
    protocol: "shredway-tpu",
    address: "192.0.2.7",
    openedNs: 0n,
  } as const;
  const ann = { keyId: "k_ann", accountId: "a_ann", accountName: "ann", ...none, accepted };
  const quietBob = { keyId: "k_bob", accountId: "a_bob", accountName: "bob", ...none };
  const bob = { ...quietBob, rateLimited: rateLimitedOfBob };
  return {
    connections: [
      { id: 1, ...shared, ...ann },
      { id: 2, ...shared, ...bob },
    ],
    keys: [
      { connections: 1, ...ann },
      { connections: 1, ...bob },
    ],
  };
}

it("shows rates of the last ten seconds, and an account only its own", () => {
  const views = new ConnectionViews();
  for (let second = 0; second <= 20; second++) {
    views.look(snapshot(second < 10 ? 0 : (second - 10) * 4, 1), BigInt(second) * secondNs);
  }
  const ofAnn = { submissionsPerSecond: 4, ...none, accepted: 40 };
  expect(views.ofAccount("a_ann")).toEqual({
    keys: [{ key: "k_ann", account: "ann", connections: 1, ...ofAnn }],
    connections: [
      {
        name: "quic 1 0",
        key: "k_ann",
        transport: "quic",
        protocol: "shredway-tpu",
        address: "192.0.2.7",
        openedAt: "1970-01-01T00:00:00.000Z",
        ...ofAnn,
      },
    ],
  });
  expect(views.all().keys.map(({ key }) => key)).toEqual(["k_bob", "k_ann"]);
  views.forget();
  expect(views.all()).toEqual({ keys: [], connections: [] });
});

describeQuic("a real connection", () => {
  it("counts accepted submissions and dropped streams, also after its end", async () => {
    const run = await IngressRun.open();
    const client = await connect(run);
    client.send(tipping());
    client.send(new Uint8Array(0));
    const key = () => run.ingress.keys[0];
    await until(() => key()?.accepted === 1 && key()?.dropped === 1, "both counts");
    expect(run.ingress.connections).toMatchObject([{ keyId: "k_good", accepted: 1, dropped: 1 }]);
    client.send(new Uint8Array(0));
    client.send(tipping());
    await until(() => key()?.accepted === 2, "the submission after the empty stream");
    await client.close();
    await until(() => key()?.connections === 0, "the end of the connection");
    expect(run.ingress.connections).toEqual([]);
    expect(key()).toMatchObject({ keyId: "k_good", accepted: 2, dropped: 2 });
  });
});
