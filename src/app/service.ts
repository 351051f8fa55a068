// The whole service that a configuration describes: the relay, and the gateway where one is wanted.
//
// Built by main, run by cli/start.ts and the sandbox. Reloads both from one reading of the file: what
// is refused by either leaves everything as it was, for the gateway only prepares before the relay changes.

import type { Config } from "../core/configuration/configuration.ts";
import { messageOf } from "../core/errors.ts";
import type { Logger } from "../core/log.ts";
import type { RelayService } from "../relay/relay-service.ts";
import type { GatewayService } from "./gateway-service.ts";
import type { Operations } from "./operations.ts";

interface ServiceDependencies {
  readonly relay: RelayService;
  readonly gateway?: GatewayService;
  /** Absent: nobody watches. */
  readonly operations?: Operations;
  /** Reads the configuration file again. Throws ShredwayError. */
  readonly readConfig: () => Config;
  readonly log: Logger;
}

export class Service {
  readonly relay: RelayService;
  readonly gateway: GatewayService | undefined;
  readonly operations: Operations | undefined;
  readonly #readConfig: () => Config;
  readonly #log: Logger;

  constructor({ relay, gateway, operations, readConfig, log }: ServiceDependencies) {
    this.relay = relay;
    this.gateway = gateway;
    this.operations = operations;
    this.#readConfig = readConfig;
    this.#log = log;
  }

  /** Settles when the leader schedule is in force (or cannot be had yet) and HTTP is answered. */
  async start(): Promise<void> {
    await this.operations?.start();
    await this.relay.start();
    await this.gateway?.start();
    await this.operations?.started();
  }

  /** What an operator should hear at the start, the worst first. */
  warnings(): string[] {
    return [...this.relay.warnings(), ...(this.gateway?.warnings() ?? [])];
  }

  /** Takes the configuration file over as far as a running service can. Never throws. */
  reload(): boolean {
    try {
      const wanted = this.#readConfig();
      const takeGateway = this.gateway?.prepare(wanted);
      const restart = [...this.relay.apply(wanted)];
      if (takeGateway) restart.push(...takeGateway());
      else if (wanted.http) restart.push("http");
      restart.push(...(this.operations?.apply(wanted) ?? []));
      if (restart.length > 0)
        this.#log.warn({ keys: restart }, `restart needed for: ${restart.join(", ")}`);
      return true;
    } catch (error) {
      this.#log.error(`not reloaded, the old tables stay in force: ${messageOf(error)}`);
      return false;
    }
  }

  /** Answers what is under way, takes nothing new; at most `graceMs`. */
  async drain(graceMs: number): Promise<void> {
    this.operations?.draining();
    await this.gateway?.drain(graceMs);
  }

  /** Settles when everything is closed and kept. Idempotent. */
  async close(): Promise<void> {
    await this.gateway?.close();
    this.operations?.close();
    this.relay.close();
  }
}
