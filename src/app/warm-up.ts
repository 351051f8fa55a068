// Warm-up: submits synthetic transactions to a second gateway in this process, so that the JavaScript
// engine compiles the path of a submission before the first customer needs it.
//
// Started by service.ts when the gateway listens. Code that ran a thousand times takes half of the
// time of new code. The second gateway has a database of its own, and its only partner listens on
// loopback: nothing reaches the real database, the real routes or the metrics. All of it is the
// production code, over real sockets, because only code that runs is compiled.

import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../core/clock.ts";
import { type Config, completeConfig } from "../core/configuration/configuration.ts";
import { messageOf } from "../core/errors.ts";
import { KeyPair } from "../core/key-pair.ts";
import { createLogger, type Logger } from "../core/log.ts";
import { pubkeyOf } from "../core/primitives.ts";
import { signLegacy } from "../core/transactions/sign-legacy.ts";
import { keyRandomBytes } from "../gateway/accounts/api-keys.ts";
import { createKey } from "../gateway/accounts/create-key.ts";
import { HttpServer } from "../gateway/http/server.ts";
import type { HttpRequest, HttpResponse } from "../gateway/http/types.ts";
import { PartnerConnection } from "../gateway/routes/partner-connection.ts";
import { kernelNetwork } from "../gateway/routes/partner-network.ts";
import { openGateway } from "./compose-gateway.ts";
import type { GatewayService } from "./gateway-service.ts";

/** Callers at the same time. More of them would delay real requests for longer. */
const callers = 2;
/** A slow machine stops here. */
const longestNs = 5_000_000_000n;
const bodyBytesMax = 1 << 20;
const tipLamports = 1_000_000n;
const systemProgram = new Uint8Array(32);
const transferInstruction = 2;

interface WarmUpOptions {
  readonly config: Config;
  readonly log: Pick<Logger, "info" | "warn">;
  readonly clock: Pick<Clock, "monotonicNs">;
}

/** A signed transfer of a tip; the blockhash is random, so each is unique. */
function transactionOf(payer: KeyPair, tipAddress: Uint8Array): Uint8Array {
  const data = Buffer.alloc(12);
  data.writeUInt32LE(transferInstruction, 0);
  data.writeBigUInt64LE(tipLamports, 4);
  const { wire } = signLegacy({
    signers: [payer],
    readonlySigned: 0,
    others: [tipAddress, systemProgram],
    readonlyUnsigned: 1,
    blockhash: pubkeyOf(randomBytes(32)),
    instructions: [{ accounts: [0, 1], data }],
  });
  return wire;
}

/** A partner that takes everything. */
function answerAsPartner({ body }: HttpRequest): HttpResponse {
  const calls: unknown = JSON.parse(Buffer.from(body).toString("latin1"));
  const answerTo = (call: unknown): object => {
    const id = typeof call === "object" && call !== null && "id" in call ? call.id : null;
    return { jsonrpc: "2.0", result: "1".repeat(88), id };
  };
  const answers = Array.isArray(calls) ? calls.map(answerTo) : answerTo(calls);
  return {
    status: 200,
    headers: { "content-type": "application/json" },
    body: JSON.stringify(answers),
  };
}

export class WarmUp {
  readonly #options: WarmUpOptions;
  readonly #payer = new KeyPair(randomBytes(32));
  readonly #tipAddress = new KeyPair(randomBytes(32));
  readonly #connections: PartnerConnection[] = [];
  readonly #ended: Promise<void>;
  #isClosed = false;
  #left: number;

  private constructor(options: WarmUpOptions) {
    this.#options = options;
    const { gateway, routes } = options.config;
    // Without a route every submission is refused anyway.
    this.#left = routes.length > 0 ? gateway.warmUpSubmissions : 0;
    this.#ended = this.#left > 0 ? this.#run() : Promise.resolve();
  }

  /** Starts in the background. A failure is logged; it changes nothing else. */
  static start(options: WarmUpOptions): WarmUp {
    return new WarmUp(options);
  }

  /** Settles when everything that the warm-up opened is closed. */
  get ended(): Promise<void> {
    return this.#ended;
  }

  /** Ends it early. Idempotent. */
  close(): Promise<void> {
    this.#isClosed = true;
    return this.#ended;
  }

  async #run(): Promise<void> {
    const { log, clock, config } = this.#options;
    const folder = join(config.data.directory, "warm-up");
    const remove = (): void => rmSync(folder, { recursive: true, force: true });
    const beganNs = clock.monotonicNs();
    try {
      remove(); // a killed process may have left it
      try {
        await this.#submitAll(folder, beganNs + longestNs);
      } finally {
        remove();
      }
      const done = config.gateway.warmUpSubmissions - this.#left;
      const ms = Number((clock.monotonicNs() - beganNs) / 1_000_000n);
      log.info({ submissions: done, ms }, "gateway: warmed up with synthetic submissions");
    } catch (error) {
      log.warn(
        `gateway: the warm-up failed, so the first submissions take longer: ${messageOf(error)}`,
      );
    }
  }

  async #submitAll(folder: string, endNs: bigint): Promise<void> {
    const { engine } = this.#options.config.http ?? {};
    const partner = await HttpServer.open({
      listen: ["127.0.0.1:0"],
      ...(engine && { engine }),
      bodyBytesMax: () => bodyBytesMax,
      handle: answerAsPartner,
    });
    try {
      const gateway = await this.#openGateway(folder, partner.addresses[0] ?? "");
      try {
        const credential = await this.#credentialOf(gateway);
        await gateway.start();
        const target = { address: gateway.addresses[0] ?? "", credential };
        const calls = Array.from({ length: callers }, () => this.#call(target, endNs));
        await Promise.all(calls);
      } finally {
        for (const connection of this.#connections) connection.close();
        await gateway.close();
      }
    } finally {
      partner.close();
    }
  }

  #openGateway(folder: string, partnerAddress: string): Promise<GatewayService> {
    const { engine } = this.#options.config.http ?? {};
    const config = completeConfig({
      relay: { shredVersion: 1, authentication: "off" },
      http: { listen: "127.0.0.1:0", webSocketListen: [], ...(engine && { engine }) },
      data: { directory: folder },
      tips: { addresses: [this.#tipAddress.address] },
      portal: { enabled: false },
      gateway: { requestsPerSecond: 1_000_000, burst: 1_000_000 },
      routes: [{ name: "warm-up", kind: "swqos", url: `http://${partnerAddress}/` }],
    });
    return openGateway({ config, log: createLogger({ level: "fatal" }), clock: systemClock });
  }

  async #credentialOf({ keys }: GatewayService): Promise<string> {
    const limits = { requestsPerSecond: null, burst: null, allowedRanges: [] };
    const { text } = await createKey(
      keys,
      { accountName: "warm-up", label: "", scopes: ["submit"], ...limits },
      { random: randomBytes(keyRandomBytes), nowNs: systemClock.nowNs() },
    );
    return text;
  }

  /** Submits one transaction after the other until none is left. */
  async #call(
    { address, credential }: { readonly address: string; readonly credential: string },
    endNs: bigint,
  ): Promise<void> {
    const { clock } = this.#options;
    const connection = new PartnerConnection(`http://${address}/`, {
      clock,
      network: kernelNetwork,
    });
    this.#connections.push(connection);
    const headers = ["content-type", "application/json", "api-key", credential];
    while (!this.#isClosed && this.#left > 0 && clock.monotonicNs() < endNs) {
      this.#left--;
      const wire = Buffer.from(transactionOf(this.#payer, this.#tipAddress.publicKey)).toString(
        "base64",
      );
      const options = '{"encoding":"base64","skipPreflight":true,"maxRetries":0}';
      const text = `{"jsonrpc":"2.0","id":1,"method":"sendTransaction","params":["${wire}",${options}]}`;
      await new Promise<void>((resolve, reject) => {
        const call = { method: "POST", path: "/relay", headers, body: Buffer.from(text) } as const;
        connection.send(call, {
          sent: () => undefined,
          answered: ({ status, body }) => {
            if (status === 200 && body.includes('"result"')) resolve();
            else reject(new Error(`status ${status}: ${body.toString("latin1", 0, 200)}`));
          },
          failed: ({ reason }) => reject(new Error(reason)),
        });
      });
    }
  }
}
