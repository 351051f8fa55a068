import { describe, expect, it } from "vitest";
import { newCredentials } from "../../../src/core/quic/certificate.ts";
import { tpuProtocol } from "../../../src/core/quic/quiche.ts";
import type { TpuSettings } from "../../../src/gateway/tpu/types.ts";
import { warmUp, warmUpLeaders } from "../../../src/gateway/tpu/warm-up.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { quicheOfTests } from "../../support/quic/quic-server.ts";

const settings: TpuSettings = {
  applicationProtocol: tpuProtocol,
  connectionsMax: 2,
  queueMax: 1000,
  timeoutMs: 1000,
  bind: { ipv4: "127.0.0.1", ipv6: "::1" },
  seed: 7,
};

function warmUpWith(clock: ManualClock, inNextTurn: (action: () => void) => void) {
  const credentials = newCredentials();
  return warmUp({ quiche: quicheOfTests(), clock, settings, credentials, inNextTurn });
}

describe("the warm-up of the process of the QUIC connections", () => {
  it("sends a transaction to each leader in memory", async () => {
    expect(await warmUpWith(new ManualClock(), setImmediate)).toBe(warmUpLeaders);
  });

  it("ends after 300 ms", async () => {
    const clock = new ManualClock();
    const transactions = await warmUpWith(clock, (action) => {
      void clock.advance(100).then(action);
    });
    expect(transactions).toBe(3);
  });

  it("leaves no timer behind", async () => {
    const clock = new ManualClock();
    await warmUpWith(clock, setImmediate);
    expect(clock.pending).toBe(0);
  });
});
