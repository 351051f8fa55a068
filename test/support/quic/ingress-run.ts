// The QUIC ingress in front of a test's gateway: a real process, real sockets, keys that the test controls.

import { systemClock } from "../../../src/core/clock.ts";
import { newEcdsaCredentials } from "../../../src/core/quic/certificate.ts";
import { Query } from "../../../src/gateway/endpoints/query.ts";
import { QuicIngress, type QuicIngressOptions } from "../../../src/gateway/quic/quic-ingress.ts";
import { closing } from "../closing.ts";
import { apiKey, GatewayRun } from "../gateway/gateway.ts";

const plain = { isProtected: false, isSwqosOnly: false } as const;

export class IngressRun {
  static readonly settings = {
    connectionsMax: 100,
    streamsMax: 64,
    streamTimeoutMs: 750,
    idleTimeoutMs: 30_000,
    handshakesPerMinute: 1000,
  };
  static readonly key = apiKey;

  readonly gateway: GatewayRun;
  readonly ingress: QuicIngress;

  static async open(
    options: Partial<QuicIngressOptions> = {},
    gateway?: GatewayRun,
  ): Promise<IngressRun> {
    const run = new IngressRun(gateway ?? (await GatewayRun.open()), options);
    closing(run.ingress);
    await run.ingress.start();
    return run;
  }

  private constructor(run: GatewayRun, options: Partial<QuicIngressOptions>) {
    this.gateway = run;
    const { gateway, keys } = run;
    this.ingress = new QuicIngress({
      listeners: [{ address: "127.0.0.1:0", ...plain }],
      connectionsPerKeyMax: 10,
      credentials: newEcdsaCredentials("shredway"),
      secret: "00".repeat(32),
      clock: systemClock,
      authenticate: (address, identity) =>
        identity.kind === "publicKey"
          ? gateway.callers.authenticatePublicKey(address, identity.publicKey)
          : gateway.callers.authenticate(address, identity.text),
      currentKey: ({ keyId, publicKey }) =>
        publicKey
          ? run.publicKeys.publicKeys.find("tpu", publicKey)
          : (Array.from(keys.values()).find((key) => key.id === keyId) ?? null),
      submit: ({ bytes, isProtected, isSwqosOnly, ...rest }) =>
        gateway.answerStream({
          ...rest,
          body: bytes,
          query: new Query(`mev-protect=${isProtected}&swqos-only=${isSwqosOnly}`),
          ingress: "quic",
        }),
      rateLimited: (report) => gateway.rateLimited("quic", report),
      settings: IngressRun.settings,
      ...options,
    });
  }

  /** "ip:port" of the first listener, or of another. */
  address(index = 0): string {
    const address = this.ingress.addresses[index];
    if (address === undefined) throw new Error(`expected the address of listener ${index}`);
    return address;
  }
}
