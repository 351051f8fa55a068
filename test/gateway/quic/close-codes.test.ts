// Every close code of every dialect, as docs/quic.md lists them.

import { createPublicKey } from "node:crypto";
import { base58 } from "@scure/base";
import { expect, it } from "vitest";
import { newCredentials, newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import { dialects } from "../../../src/core/quic/dialects.ts";
import type { QuicheCredentials } from "../../../src/core/quic/quiche.ts";
import { closing } from "../../support/closing.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { invalidProtection, resetUntilClosed } from "../../support/quic/attacks.ts";
import { sessionsOf } from "../../support/quic/ingress-clients.ts";
import { IngressRun } from "../../support/quic/ingress-run.ts";
import { QuicClient } from "../../support/quic/quic-client.ts";
import { describeQuic } from "../../support/quic/quic-server.ts";

const keyCodes = {
  shutdown: 0,
  unauthorized: 1,
  connection_limit: 2,
  forbidden: 3,
  excess: 4,
} as const;
const codes: Readonly<Record<string, Readonly<Record<keyof typeof keyCodes, number>>>> = {
  "shredway-tpu": keyCodes,
  "astralane-tpu": keyCodes,
  "lunar-lander-tpu": keyCodes,
  "solana-tpu": {
    shutdown: 0,
    unauthorized: 2,
    connection_limit: 4,
    forbidden: 2,
    excess: 3,
  },
};

/** An ingress, and the credentials of a client for each API key of the gateway. */
async function openFor(protocol: string) {
  const run = await IngressRun.open({ connectionsPerKeyMax: 1 });
  const credentialsOf = (key: string): QuicheCredentials => {
    if (protocol !== "solana-tpu") return newEcdsaCredentials(key);
    const credentials = newCredentials();
    const { x = "" } = createPublicKey(credentials.certificatePem).export({ format: "jwk" });
    const apiKey = run.gateway.keys.get(key);
    if (apiKey) {
      const publicKey = base58.encode(Buffer.from(x, "base64url"));
      run.gateway.publicKeys.add(apiKey, publicKey, "tpu");
    }
    return credentials;
  };
  const begin = async (credentials: QuicheCredentials): Promise<QuicClient> =>
    closing(await QuicClient.open(run.address(), { credentials, protocol, idleTimeoutMs: 60_000 }));
  const connect = async (key: string): Promise<QuicClient> => {
    const before = sessionsOf(run);
    const client = await begin(credentialsOf(key));
    await until(() => sessionsOf(run) > before, "an accepted connection");
    return client;
  };
  return { run, begin, connect, credentialsOf };
}

async function endOf(client: QuicClient): Promise<{ name: string; code: number | undefined }> {
  const { by, isApp, code, reason = "" } = await client.ended;
  expect({ by, isApp }).toEqual({ by: "peer", isApp: true });
  return { name: reason.split(":")[0] ?? "", code };
}

it("are those of all dialects", () => {
  expect(dialects.map(({ protocol }) => protocol)).toEqual(Object.keys(codes));
});

describeQuic.each(Object.entries(codes))("on %s", (protocol, expected) => {
  it("a client learns why the service closes its connection", async () => {
    const { run, begin, connect, credentialsOf } = await openFor(protocol);
    const ends = [
      await endOf(await begin(credentialsOf("nobody"))),
      await endOf(await begin(credentialsOf("reader"))),
    ];
    const first = await connect("good");
    ends.push(await endOf(await begin(credentialsOf("good"))));
    await resetUntilClosed(first);
    ends.push(await endOf(first));
    await until(() => sessionsOf(run) === 0, "the end of the first connection");
    const last = await connect("good");
    const closed = run.ingress.close();
    ends.push(await endOf(last));
    await closed;
    const order = ["unauthorized", "forbidden", "connection_limit", "excess", "shutdown"] as const;
    // A public key that was registered without the scope submit counts as unknown.
    const nameOf = (name: string) =>
      name === "forbidden" && protocol === "solana-tpu" ? "unauthorized" : name;
    expect(ends).toEqual(order.map((name) => ({ name: nameOf(name), code: expected[name] })));
  });
});

describeQuic("a certificate", () => {
  it("with a request for protection that is not a BOOLEAN is refused with code 3", async () => {
    const { begin } = await openFor("lunar-lander-tpu");
    const client = await begin(invalidProtection("good"));
    expect(await client.ended).toMatchObject({
      by: "peer",
      code: keyCodes.forbidden,
      reason: "forbidden: certificate extension 2.999.1.1: expected a BOOLEAN, got another value",
    });
  });
});
