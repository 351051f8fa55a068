// Settings of a running gateway that are derived from the configuration and follow a reload.
//
// compose-gateway.ts creates it; gateway-service.ts reloads it. Everything that uses a setting reads it from
// here each time.

import type { Config } from "../core/configuration/configuration.ts";
import { shredTipAddressesOf } from "../core/configuration/shred-tips.ts";
import type { FastPath } from "../gateway/fast-path/fast-path.ts";
import type { GatewaySettings } from "../gateway/methods/dependencies.ts";
import type { PlanPolicy } from "../gateway/submission/plan.ts";
import { TransactionInspector } from "../gateway/transactions/transaction-checks.ts";
import type { TrackerPart } from "./compose-partners.ts";
import { bytesOf, policyOf, settingsOf, tipAddressesOf } from "./gateway-settings.ts";
import type { NodeDirectory } from "./node-directory.ts";
import { nodeSettingsOf } from "./node-settings.ts";

/** Settings that are derived from the configuration alone and follow a reload. */
export class GatewayTables {
  config: Config;
  /** This object never changes; a reload changes its fields. */
  readonly settings: GatewaySettings;
  inspector: TransactionInspector;
  /** null: requests are sent after they were read. */
  readonly #fastPath: FastPath | null;
  /** Identity in base58. */
  shredTipAddresses: ReadonlySet<string>;
  /** Finds only tips to the shred-tip addresses. */
  shredInspector: TransactionInspector;
  policy: PlanPolicy;

  /** Shred-tip addresses of all nodes: a landed tip to any of them counts. */
  knownShredTipAddresses: ReadonlySet<string>;

  readonly #partners: Pick<TrackerPart, "tracker" | "apply">;
  #nodes: NodeDirectory | null = null;

  /** Throws ShredwayError. */
  constructor(
    config: Config,
    partners: Pick<TrackerPart, "tracker" | "apply">,
    fastPath: FastPath | null,
  ) {
    this.config = config;
    this.#partners = partners;
    this.#fastPath = fastPath;
    this.policy = policyOf(config, partners.tracker);
    this.settings = settingsOf(config);
    this.inspector = new TransactionInspector({
      tipAddresses: tipAddressesOf(config),
      dontFrontPrefixes: config.gateway.dontFrontPrefixes,
    });
    this.shredTipAddresses = shredTipAddressesOf(config);
    this.knownShredTipAddresses = this.shredTipAddresses;
    this.shredInspector = new TransactionInspector({
      tipAddresses: bytesOf(this.shredTipAddresses),
      dontFrontPrefixes: [],
    });
  }

  /** From now on, the other nodes on the database count. */
  follow(nodes: NodeDirectory): void {
    this.#nodes = nodes;
    nodes.onChange(() => this.#applyNodes());
    this.#applyNodes();
  }

  /** Checks the new settings and returns a function that applies them. Throws ShredwayError. */
  prepare(config: Config): () => void {
    const { settings, ...tables } = new GatewayTables(config, this.#partners, null);
    this.#nodes?.check(nodeSettingsOf(config));
    return () => {
      this.#partners.apply(config);
      Object.assign(this, tables);
      Object.assign(this.settings, settings);
      this.#nodes?.replace(nodeSettingsOf(config));
      this.setFastPathRules();
    };
  }

  setFastPathRules(): void {
    const { minimumTipLamports, minimumTipLamportsByMethod } = this.settings;
    this.#fastPath?.setRules({
      tipAddresses: tipAddressesOf(this.config),
      dontFrontPrefixes: this.config.gateway.dontFrontPrefixes,
      minimumTipLamports: minimumTipLamportsByMethod.sendTransaction ?? minimumTipLamports,
    });
  }

  #applyNodes(): void {
    const nodes = this.#nodes;
    if (!nodes) return;
    Object.assign(
      this.settings,
      settingsOf(this.config, (address) => nodes.isOffered(address)),
    );
    this.knownShredTipAddresses = new Set([
      ...this.shredTipAddresses,
      ...nodes.knownShredAddresses(),
    ]);
  }
}
