// The product's endpoint of connections to leaders, in a test that records its events.

import { formatAddress, parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { newCredentials } from "../../../src/core/quic/certificate.ts";
import { type QuicheCredentials, tpuProtocol } from "../../../src/core/quic/quiche.ts";
import { TpuEndpoint } from "../../../src/gateway/tpu/endpoint.ts";
import type { LeaderState, TpuEvent, TpuSettings } from "../../../src/gateway/tpu/types.ts";
import { closing } from "../closing.ts";
import { until } from "../network/udp-receiver.ts";
import { needQuiche } from "./quic-client.ts";

const roundsMax = 20;
const endings: ReadonlySet<string> = new Set(["acknowledged", "failed", "dropped"]);

export class EndpointRun {
  /** Events by id, in order. */
  readonly events = new Map<number, TpuEvent[]>();
  readonly endpoint: TpuEndpoint;
  #next = 0;

  static async open(
    credentials: QuicheCredentials = newCredentials(),
    settings: Partial<TpuSettings> = {},
  ): Promise<EndpointRun> {
    const record = (event: TpuEvent): void => {
      const notifications = run.events.get(event.id);
      if (notifications) notifications.push(event);
      else run.events.set(event.id, [event]);
    };
    const endpoint = await TpuEndpoint.open({
      quiche: needQuiche(),
      clock: systemClock,
      settings: {
        applicationProtocol: tpuProtocol,
        connectionsMax: 8,
        queueMax: 10_000,
        timeoutMs: 30_000,
        bind: { ipv4: "0.0.0.0", ipv6: "::" },
        seed: 1,
        ...settings,
      },
      credentials,
      report: record,
      changed: () => undefined,
    });
    const run = new EndpointRun(closing(endpoint));
    return run;
  }

  private constructor(endpoint: TpuEndpoint) {
    this.endpoint = endpoint;
  }

  /** `address`: "ip:port". Returns the transaction's id. */
  send(address: string, bytes: Uint8Array, restMs = 60_000): number {
    const id = this.#next++;
    const { bytes: host, port } = parseEndpoint(address);
    this.endpoint.send({ id, address: { host: formatAddress(host), port }, bytes, restMs });
    return id;
  }

  kindsOf(id: number): string {
    return (this.events.get(id) ?? []).map(({ kind }) => kind).join(" ");
  }

  /** Expects every transaction to be sent and acknowledged. */
  acknowledged(): Promise<void> {
    const isDone = (id: number): boolean => this.kindsOf(id) === "sent acknowledged";
    const all = (): boolean => Array.from({ length: this.#next }, (_, id) => id).every(isDone);
    return until(all, `${this.#next} acknowledgements`);
  }

  /**
   * Each of `ids` is acknowledged in the end: transactions lost with a connection are
   * sent again. Some may arrive twice.
   */
  async delivered(address: string, ids: ReadonlyMap<number, Uint8Array>): Promise<void> {
    let open = [...ids];
    for (let round = 0; round < roundsMax && open.length > 0; round++) {
      const isEnded = ([id]: readonly [number, Uint8Array]): boolean =>
        endings.has(this.events.get(id)?.at(-1)?.kind ?? "");
      await until(() => open.every(isEnded), `the end of ${open.length} transactions`);
      const lost = open.filter(([id]) => this.kindsOf(id) !== "sent acknowledged");
      open = lost.map(([, bytes]) => [this.send(address, bytes), bytes]);
    }
    if (open.length > 0) throw new Error(`expected acknowledgements, ${open.length} are missing`);
  }

  leader(address: string): LeaderState | undefined {
    return this.endpoint.leaders().find((leader) => leader.address === address);
  }
}
