// Portal harness: a complete service with its portal for one test: real HTTP, WebSockets, store and relay,
// two customers.

import { createSocket } from "node:dgram";
import { request } from "node:http";
import { WebSocket } from "ws";
import type { GatewayService } from "../../../src/app/gateway-service.ts";
import { openService } from "../../../src/app/open-service.ts";
import type { Service } from "../../../src/app/service.ts";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import { createLogger, type Logger } from "../../../src/core/log.ts";
import { SeededRandom } from "../../../src/core/seeded-random.ts";
import { keyRandomBytes, type NewKeySettings } from "../../../src/gateway/accounts/api-keys.ts";
import { createKey } from "../../../src/gateway/accounts/create-key.ts";
import type { ApiKey, Scope } from "../../../src/gateway/accounts/types.ts";
import type { LiveTopics } from "../../../src/platform/portal/types.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { closing } from "../../support/closing.ts";
import { tipAddress } from "../../support/gateway/gateway.ts";
import { until } from "../../support/network/udp-receiver.ts";
import { generateSlot } from "../../support/shreds/generated-slot.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { base64, tipping } from "../../support/transactions/tipping.ts";

export const region = "here";
export const tier1Lamports = 200_000_000n;

type Given = Parameters<typeof completeConfig>[0];

export interface RecordedRequest {
  readonly cookie?: string;
  /** Null sends no Origin; the default is the service's own. */
  readonly origin?: string | null;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
}

export interface Answered {
  readonly status: number;
  header(name: string): string;
  readonly text: string;
  /** Null if the body is not JSON. */
  readonly json: ReturnType<typeof JSON.parse>;
}

export interface Key {
  readonly text: string;
  readonly key: ApiKey;
}

export class PortalHarness {
  readonly clock = ManualClock.running();
  readonly lines: Record<string, unknown>[] = [];
  readonly log: Logger = createLogger({
    stream: { write: (line: string) => void this.lines.push(JSON.parse(line)) },
  });
  /** Folder of the database. */
  readonly directory = temporaryFolder();
  readonly #random = new SeededRandom(11);
  #service: Service | undefined;
  #slots = 0;
  #tips = 0n;

  static async open(
    sections: Partial<Record<"http" | "data" | "delivery" | "portal" | "relay", object>> &
      Pick<Given, "routes" | "streams"> = {},
  ): Promise<PortalHarness> {
    const harness = new PortalHarness();
    const { directory } = harness;
    const config = completeConfig({
      http: { listen: "127.0.0.1:0", webSocketListen: [], ...sections.http },
      data: { directory, ...sections.data },
      tips: { addresses: [tipAddress], shredAddresses: [tipAddress] },
      portal: { ...sections.portal },
      routes: sections.routes ?? [],
      ...(sections.streams && { streams: sections.streams }),
      delivery: { regions: [region], region, ...sections.delivery },
      relay: {
        listen: "127.0.0.1:0",
        shredVersion: 1,
        authentication: "off",
        allowPrivateDestinations: true,
        deshred: false,
        sources: [{ name: "one", address: "127.0.0.1", tier: "tier-1" }],
        ...sections.relay,
      },
    });
    const { log, clock } = harness;
    const service = await openService({
      config,
      readConfig: () => config,
      prefault: false,
      log,
      clock,
    });
    harness.#service = closing(service);
    await service.start();
    return harness;
  }

  get service(): Service {
    if (!this.#service) throw new Error("expected an open service");
    return this.#service;
  }

  get gateway(): GatewayService {
    const { gateway } = this.service;
    if (!gateway) throw new Error("expected a gateway");
    return gateway;
  }

  get host(): string {
    return this.gateway.addresses[0] ?? "";
  }

  get origin(): string {
    return `http://${this.host}`;
  }

  /** Creates a key of the account. */
  async key(
    accountName: string,
    scopes: readonly Scope[] = ["submit", "read", "shreds"],
    fields: Partial<
      Pick<NewKeySettings, "allowedRanges" | "label" | "requestsPerSecond" | "burst">
    > = {},
  ): Promise<Key> {
    const keyOptions = { accountName, label: "", scopes, requestsPerSecond: null, burst: null };
    const random = this.#random.fillBytes(new Uint8Array(keyRandomBytes));
    const nowNs = this.clock.nowNs();
    const created = await createKey(
      this.gateway.keys,
      { ...keyOptions, allowedRanges: [], ...fields },
      { random, nowNs },
    );
    await this.gateway.refreshKeys();
    return created;
  }

  ask(method: string, path: string, options: RecordedRequest = {}): Promise<Answered> {
    const { cookie, origin = this.origin, body, headers } = options;
    const [host, port] = this.host.split(":");
    return new Promise((resolve, reject) => {
      const sent = request(
        {
          method,
          path,
          host,
          port,
          agent: false,
          headers: {
            ...(cookie !== undefined && { cookie }),
            ...(origin !== null && { origin }),
            ...(body !== undefined && { "content-type": "application/json" }),
            ...headers,
          },
        },
        (response) => {
          const chunks: Buffer[] = [];
          response.on("data", (chunk: Buffer) => chunks.push(chunk));
          response.on("end", () => {
            const text = Buffer.concat(chunks).toString();
            const isJson = response.headers["content-type"] === "application/json";
            resolve({
              status: response.statusCode ?? 0,
              header: (name) => String(response.headers[name] ?? ""),
              text,
              json: isJson && text !== "" ? JSON.parse(text) : null,
            });
          });
        },
      );
      sent.on("error", reject);
      sent.end(body);
    });
  }

  signIn(text: string, options: RecordedRequest = {}): Promise<Answered> {
    return this.ask("POST", "/portal/api/session", {
      body: JSON.stringify({ key: text }),
      ...options,
    });
  }

  /** Returns the cookie of a new session. */
  async cookie({ text }: Pick<Key, "text">): Promise<string> {
    const answer = await this.signIn(text);
    if (answer.status !== 200) throw new Error(`expected a session, got ${answer.text}`);
    return answer.header("set-cookie").split(";")[0] ?? "";
  }

  call(cookie: string, method: string, params: unknown = []): Promise<Answered> {
    const body = JSON.stringify({ method, params });
    return this.ask("POST", "/portal/api/call", { cookie, body });
  }

  /** Registers a tip for shreds. It counts immediately, because no node is asked. */
  async registerTip({ text }: Pick<Key, "text">, lamports: bigint): Promise<void> {
    const transaction = base64(tipping({ tip: lamports, amount: ++this.#tips }));
    const answer = await this.ask("POST", `/shred-pay?api-key=${text}`, {
      body: JSON.stringify([{ transaction, slot: 1 }]),
    });
    if (answer.status !== 200) throw new Error(`expected a registration, got ${answer.text}`);
  }

  /** Sends each `step`-th shred of a new slot to the relay. Resolves when the kernel has them. */
  async sendSlot(step = 1): Promise<number> {
    const [host, port] = (this.service.relay.relay.addresses[0] ?? "").split(":");
    const packets = generateSlot(this.#slots++).filter((_, i) => i % step === 0);
    const socket = createSocket("udp4");
    for (const packet of packets) {
      await new Promise((resolve) => socket.send(packet, Number(port), host, resolve));
    }
    socket.close();
    return packets.length;
  }

  feed(cookie: string, headers: Readonly<Record<string, string>> = {}): Feed {
    return closing(new Feed(this.host, { origin: this.origin, cookie, ...headers }));
  }
}

/** A live feed as the page receives it. */
export class Feed {
  readonly topics: Partial<LiveTopics> = {};
  /** Number of messages per topic. */
  readonly counts: Record<string, number> = {};
  closeCode: number | null = null;
  status: number | null = null;
  readonly socket: WebSocket;

  constructor(host: string, headers: Readonly<Record<string, string>>) {
    this.socket = new WebSocket(`ws://${host}/portal/live`, { headers });
    this.socket.on("message", (data: Buffer) => {
      const { topic, value } = JSON.parse(data.toString());
      Object.assign(this.topics, { [topic]: value });
      this.counts[topic] = (this.counts[topic] ?? 0) + 1;
    });
    this.socket.on("close", (code) => {
      this.closeCode = code;
    });
    this.socket.on("unexpected-response", (_request, response) => {
      this.status = response.statusCode ?? 0;
    });
    this.socket.on("error", () => undefined);
  }

  /** Waits for a value of the topic that satisfies the condition. */
  async has<Name extends keyof LiveTopics>(
    topic: Name,
    isWanted: (value: LiveTopics[Name]) => boolean = () => true,
  ): Promise<LiveTopics[Name]> {
    const current = (): LiveTopics[Name] | undefined => this.topics[topic];
    await until(
      () => {
        const value = current();
        return value !== undefined && isWanted(value);
      },
      `the topic ${topic}, last ${JSON.stringify(current())?.slice(0, 300)}`,
      20_000,
    );
    const value = current();
    if (value === undefined) throw new Error("expected a value");
    return value;
  }

  close(): void {
    this.socket.terminate();
  }
}
