// Node settings: what the nodes on one database must configure alike, and how two nodes differ. Pure.
//
// Called by node-directory.ts. A difference is grave if customers would get wrong tiers, or
// shreds twice or not at all.

import type { Config } from "../core/configuration/configuration.ts";
import { thresholdsOf } from "../core/configuration/schema-delivery.ts";
import { shredTipAddressesOf } from "../core/configuration/shred-tips.ts";
import { destinationSettingsOf } from "../shreds/destinations/destination-rules.ts";

export interface NodeSettings {
  /** Tiers that can be bought, narrowest first, with thresholds in lamports. */
  readonly tiers: readonly (readonly [name: string, lamports: number])[];
  readonly regions: readonly string[];
  /** Region of the node's relay; null: it has no source, so it sends no shred. */
  readonly region: string | null;
  /** Sorted. Empty: the node does not sell shreds. */
  readonly shredAddresses: readonly string[];
  readonly historyHours: number;
}

interface NodeDifference {
  /** Configuration key. */
  readonly key: string;
  /** The difference as a sentence, without the name of the other node. */
  readonly text: string;
  readonly isGrave: boolean;
}

export function nodeSettingsOf(config: Config): NodeSettings {
  const { relay, tiers, delivery, data } = config;
  return {
    tiers: thresholdsOf(relay.tiers, tiers.thresholdLamports),
    regions: delivery.regions.toSorted(),
    region: relay.sources.length > 0 ? destinationSettingsOf(config).region : null,
    shredAddresses: [...shredTipAddressesOf(config)].toSorted(),
    historyHours: data.historyHours,
  };
}

export function writeNodeSettings(settings: NodeSettings): string {
  return JSON.stringify(settings);
}

function textsOf(value: unknown): string[] | null {
  return Array.isArray(value) && value.every((one) => typeof one === "string") ? value : null;
}

function tiersOf(value: unknown): [string, number][] | null {
  if (!Array.isArray(value)) return null;
  const read = value.flatMap((pair): [string, number][] => {
    const [name, lamports]: unknown[] = Array.isArray(pair) ? pair : [];
    return typeof name === "string" && typeof lamports === "number" ? [[name, lamports]] : [];
  });
  return read.length === value.length ? read : null;
}

/** null: another version of Shredway wrote settings that this one cannot read. */
export function readNodeSettings(text: string): NodeSettings | null {
  let value: Partial<Record<keyof NodeSettings, unknown>>;
  try {
    value = Object(JSON.parse(text));
  } catch {
    return null;
  }
  const tiers = tiersOf(value.tiers);
  const regions = textsOf(value.regions);
  const shredAddresses = textsOf(value.shredAddresses);
  const { region, historyHours } = value;
  if (!tiers || !regions || !shredAddresses || typeof historyHours !== "number") return null;
  if (region !== null && typeof region !== "string") return null;
  return { tiers, regions, region, shredAddresses, historyHours };
}

/** The difference from the node of that name, as a sentence. */
export function textOfDifference(node: string, { key, text }: NodeDifference): string {
  return `${key} differs from node ${node}: ${text}`;
}

function listed(texts: readonly string[]): string {
  return texts.length === 0 ? "none" : texts.join(", ");
}

function tierTexts({ tiers }: NodeSettings): string {
  return listed(tiers.map(([name, lamports]) => `${name} from ${lamports} lamports`));
}

/** Differences between this node and another node that runs. Nodes that sell no shreds may differ. */
export function differencesOf(own: NodeSettings, other: NodeSettings): NodeDifference[] {
  const found: NodeDifference[] = [];
  if (own.shredAddresses.length > 0 && other.shredAddresses.length > 0) {
    if (tierTexts(own) !== tierTexts(other)) {
      found.push({
        key: "tiers.thresholdLamports",
        text: `this node sells ${tierTexts(own)}; the other sells ${tierTexts(other)}`,
        isGrave: true,
      });
    }
    if (listed(own.regions) !== listed(other.regions)) {
      found.push({
        key: "delivery.regions",
        text: `this node has ${listed(own.regions)}; the other has ${listed(other.regions)}`,
        isGrave: true,
      });
    }
    if (own.region !== null && own.region === other.region) {
      found.push({
        key: "delivery.region",
        text: `both nodes send shreds to the region ${own.region}, so its customers receive each shred twice`,
        isGrave: true,
      });
    }
    if (listed(own.shredAddresses) !== listed(other.shredAddresses)) {
      const onlyOwn = own.shredAddresses.filter((one) => !other.shredAddresses.includes(one));
      const onlyOther = other.shredAddresses.filter((one) => !own.shredAddresses.includes(one));
      found.push({
        key: "tips.shredAddresses",
        text:
          `only this node has ${listed(onlyOwn)}; only the other has ${listed(onlyOther)}; ` +
          "they are not offered until every node has them",
        isGrave: false,
      });
    }
  }
  if (own.historyHours !== other.historyHours) {
    found.push({
      key: "data.historyHours",
      text: `this node keeps ${own.historyHours} hours; the other keeps ${other.historyHours}`,
      isGrave: false,
    });
  }
  return found;
}
