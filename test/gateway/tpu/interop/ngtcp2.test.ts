// The product's client with an independent leader: ngtcp2 and GnuTLS with strict TLS.

import { randomBytes } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { credentialsOf } from "../../../../src/core/quic/certificate.ts";
import { SandboxKeyPair } from "../../../../src/sandbox/chain/keys.ts";
import { until } from "../../../support/network/udp-receiver.ts";
import {
  buildNgtcp2Leader,
  buildTimeoutMs,
  Ngtcp2Leader,
  type Ngtcp2Options,
  ngtcp2Problem,
} from "../../../support/quic/interop/ngtcp2-leader.ts";
import { QuicClient, quiche } from "../../../support/quic/quic-client.ts";
import { selfSignedCertificate, selfSignedKey } from "../../../support/quic/self-signed.ts";
import { EndpointRun } from "../../../support/quic/tpu-endpoint.ts";

const identity = SandboxKeyPair.named(1, "gateway");

const name = `a leader by another hand (ngtcp2, GnuTLS) ${ngtcp2Problem ?? ""}`.trim();

describe.skipIf(ngtcp2Problem !== null || !quiche)(name, () => {
  let folder = "";
  let program = "";

  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), "shredway-"));
    program = buildNgtcp2Leader(folder);
  }, buildTimeoutMs);

  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const opened = async (options: Ngtcp2Options = {}) => {
    const leader = await Ngtcp2Leader.open(program, options);
    const client = await EndpointRun.open(credentialsOf(identity.seed));
    return { leader, client };
  };

  it.each([
    ["after a retry", true],
    ["at once", false],
  ])("receives the identity and a transaction, %s", async (_name, retries) => {
    const { leader, client } = await opened({ retries });
    const wire = randomBytes(215);
    client.send(leader.address, wire);
    await client.acknowledged();
    await until(() => leader.transactions.length === 1, "the transaction");
    expect(leader.identities).toEqual([Buffer.from(identity.publicKey).toString("hex")]);
    expect(leader.transactions).toEqual([wire.toString("hex")]);
  });

  it("receives transactions of every size up to its stream limit", async () => {
    const { leader, client } = await opened();
    const wires = [1, 1199, 1232, 1233, 2464, 4095, 4096].map((size) => randomBytes(size));
    for (const wire of wires) client.send(leader.address, wire);
    await client.acknowledged();
    const sent = new Set(wires.map((wire) => wire.toString("hex")));
    await until(() => leader.transactions.length === wires.length, "all sizes");
    expect(new Set(leader.transactions)).toEqual(sent);
  });

  it("gets its streams back one by one, without a stall", async () => {
    const { leader, client } = await opened({ streams: 4 });
    const wires = Array.from({ length: 1000 }, () => randomBytes(300).toString("hex"));
    for (const wire of wires) client.send(leader.address, Buffer.from(wire, "hex"));
    await client.acknowledged();
    await until(() => leader.transactions.length === wires.length, "all transactions");
    expect(new Set(leader.transactions)).toEqual(new Set(wires));
    expect(client.leader(leader.address)?.connections).toBe(1);
  });

  it("reports why it closes, and accepts the next connection", async () => {
    const { leader, client } = await opened();
    client.send(leader.address, randomBytes(100));
    await client.acknowledged();
    leader.closeAll(4, "too_many");
    await until(
      () => client.leader(leader.address)?.lastClose === "too_many",
      "the reason of the end",
    );
    client.send(leader.address, randomBytes(100));
    await client.acknowledged();
    expect(leader.identities.length).toBe(2);
  });

  it("rejects a wrong certificate, a missing one and another protocol", async () => {
    const leader = await Ngtcp2Leader.open(program);
    const credentials = { keyPem: selfSignedKey, certificatePem: selfSignedCertificate };
    const strangers = [{ credentials }, { credentials: null }, { protocol: "h3" }];
    for (const options of strangers) await QuicClient.open(leader.address, options);
    await until(() => leader.ends.length === strangers.length, "the end of all handshakes");
    expect(leader.identities).toEqual([]);
    expect(leader.transactions).toEqual([]);
  });
});
