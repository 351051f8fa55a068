// Configuration schema: every key of shredway.yaml, with its range, unit, default and meaning.
//
// The one place that puts the sections together. config.ts checks files against it,
// config-document.ts writes docs/configuration.md from it, so a key cannot exist undocumented. Rules
// between keys stand in config-rules.ts.

import { z } from "zod";
import { delivery, tiers } from "./schema-delivery.ts";
import { data, gateway, http, region, route, tips } from "./schema-gateway.ts";
import { key, keyDocuments, name, parsed, parseHttpUrl, parseWebSocketUrl } from "./schema-keys.ts";
import { operations } from "./schema-operations.ts";
import { nonces, tracker } from "./schema-partners.ts";
import { portal } from "./schema-portal.ts";
import { relay } from "./schema-relay.ts";

export { keyDocuments } from "./schema-keys.ts";

const solana = z.strictObject({
  rpc: key(parsed(parseHttpUrl), {
    expects: "a URL of http or https",
    meaning:
      "JSON-RPC address of a node. Asked for the leader schedule (when `relay.leaders` is absent) and " +
      "for a second opinion on the present slot; by the gateway for what became of transactions, and for " +
      "the read methods that it passes on. Masked by `--print-config`, for it may hold a key.",
  }),
  websocket: key(parsed(parseWebSocketUrl).exactOptional(), {
    expects: "a URL of ws or wss",
    meaning: "Where the node takes WebSockets; the gateway passes subscriptions on to it.",
    absent:
      "`solana.rpc` with ws for http, and the port above where it names one, as @solana/web3.js does",
  }),
});

export const configSchema = z.strictObject({
  solana: key(solana.exactOptional(), {
    expects: "a mapping with the keys rpc and, optional, websocket",
    meaning: "The node that is asked for what the shreds cannot tell.",
    absent: "nobody is asked",
  }),
  relay: key(relay, {
    expects: "a mapping",
    meaning: "Shreds in, authenticated, each once, out by tier.",
  }),
  http: key(http.exactOptional(), {
    expects: "a mapping",
    meaning: "The gateway: submissions over HTTP. Needs `tips.addresses` or those of a region.",
    absent: "no gateway: the relay alone",
  }),
  operations: key(operations.prefault({}), {
    expects: "a mapping",
    meaning: "Metrics and readiness: who may read them, and where.",
  }),
  data: key(data.prefault({}), { expects: "a mapping", meaning: "What is kept on disk." }),
  tips: key(tips.prefault({}), {
    expects: "a mapping",
    meaning: "Tips and where they are paid to.",
  }),
  tiers: key(tiers.prefault({}), {
    expects: "a mapping",
    meaning: "What registered tips buy.",
  }),
  delivery: key(delivery.prefault({}), {
    expects: "a mapping",
    meaning: "Where accounts may have shreds sent to.",
  }),
  region: key(name().exactOptional(), {
    expects: "a name of regions",
    meaning: "Region of this machine: its tip addresses are the ones that getTipAccounts lists.",
    absent: "the first of `regions`",
  }),
  regions: key(z.array(region).max(64).default([]), {
    expects: "a list of at most 64 regions",
    meaning:
      "The regions of the service. A tip to any region's address counts everywhere; each region lists its own.",
  }),
  gateway: key(gateway.prefault({}), {
    expects: "a mapping",
    meaning: "How submissions are taken, followed and limited.",
  }),
  nonces: key(nonces.prefault({}), {
    expects: "a mapping",
    meaning: "Durable nonces that the service keeps for its API keys.",
  }),
  tracker: key(tracker.prefault({}), {
    expects: "a mapping",
    meaning: "Who the alternative partner's leaders are.",
  }),
  portal: key(portal.prefault({}), {
    expects: "a mapping",
    meaning: "The pages for people, on the gateway's addresses.",
  }),
  routes: key(z.array(route).max(64).default([]), {
    expects: "a list of at most 64 routes",
    meaning: "Where submissions go. Changed by a reload: an unchanged route keeps its queue.",
  }),
});
keyDocuments.add(configSchema, {
  expects:
    "a mapping with the section relay and, optional, solana, http, operations, data, tips, tiers, delivery, region, regions, gateway, nonces, tracker, portal, routes",
  meaning: "The configuration file.",
});

/** The effective configuration: defaults filled in, paths absolute. */
export type Config = z.output<typeof configSchema>;
export type RelayConfig = Config["relay"];
export type SolanaConfig = NonNullable<Config["solana"]>;
export type RouteConfig = Config["routes"][number];

/** Takes off what wraps a schema (default, optional, list of one): the part that has the keys. */
export function unwrapSchema(schema: z.core.$ZodType): z.core.$ZodType {
  if (
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodExactOptional
  ) {
    return unwrapSchema(schema.def.innerType);
  }
  return schema instanceof z.ZodPipe ? unwrapSchema(schema.def.out) : schema;
}

/** The schema of the key at `path`, or of the nearest key around it that has one. */
export function schemaAt(path: readonly PropertyKey[]): z.core.$ZodType {
  let schema: z.core.$ZodType = configSchema;
  for (const part of path) {
    const inner = unwrapSchema(schema);
    let next: z.core.$ZodType | undefined;
    if (inner instanceof z.ZodObject && typeof part === "string") {
      next = Object.hasOwn(inner.shape, part) ? inner.shape[part] : undefined;
    } else if (inner instanceof z.ZodArray && typeof part === "number") {
      next = inner.element;
    }
    if (!next) break;
    schema = next;
  }
  return schema;
}
