// Configuration schema: every key of shredway.yaml, with its range, unit, default and meaning.
//
// Only this file combines the sections. configuration.ts checks files against it, and document.ts
// writes docs/configuration.md from it, so every key is documented. Rules between keys are in
// rules.ts.

import { z } from "zod";
import { delivery, tiers } from "./schema-delivery.ts";
import { data, gateway, http, region, route, tips } from "./schema-gateway.ts";
import { key, keyDocuments, name, parsed, parseHttpUrl, parseWebSocketUrl } from "./schema-keys.ts";
import { operations } from "./schema-operations.ts";
import { nonces, tracker } from "./schema-partners.ts";
import { portal } from "./schema-portal.ts";
import { quic } from "./schema-quic.ts";
import { relay } from "./schema-relay.ts";
import { streams } from "./schema-streams.ts";
import { subscribers } from "./schema-subscribers.ts";

export { keyDocuments } from "./schema-keys.ts";

const solana = z.strictObject({
  rpc: key(parsed(parseHttpUrl), {
    expects: "a URL of http or https",
    meaning:
      "JSON-RPC URL of a node. The relay fetches the leader schedule (without " +
      "`relay.leaders`) and compares the current slot. The gateway fetches transaction " +
      "statuses and forwards read methods. `--print-config` masks it, because it may " +
      "contain a key.",
  }),
  websocket: key(parsed(parseWebSocketUrl).exactOptional(), {
    expects: "a URL of ws or wss",
    meaning: "WebSocket URL of the node. The gateway forwards subscriptions to it.",
    absent:
      "`solana.rpc` with ws for http and, if it contains a port, the next higher port, as " +
      "in @solana/web3.js",
  }),
});

export const configSchema = z.strictObject({
  solana: key(solana.exactOptional(), {
    expects: "a mapping with the keys rpc and, optional, websocket",
    meaning: "RPC node for data that the shreds do not contain.",
    absent:
      "no node is used: the leader schedule comes from `relay.leaders`, statuses come from the " +
      "relay's shreds, and read methods are rejected",
  }),
  relay: key(relay, {
    expects: "a mapping",
    meaning: "Shred relay: sources, authentication, deduplication and fan-out by tier.",
  }),
  shredstream: key(subscribers.exactOptional(), {
    expects: "a mapping",
    meaning:
      "gRPC services of a block engine: subscribers with a stock `jito-shredstream-proxy` " +
      "receive this relay's shreds (docs/subscribers.md).",
    absent: "no such services",
  }),
  streams: key(streams.exactOptional(), {
    expects: "a mapping",
    meaning:
      "gRPC services for decoded streams: transactions and entries from the relay's shreds " +
      "(docs/streams.md). Requires `http` and `relay.deshred`.",
    absent: "no such services",
  }),
  http: key(http.exactOptional(), {
    expects: "a mapping",
    meaning: "Listeners of the gateway. Requires `tips.addresses` or a region with `tipAddresses`.",
    absent:
      "the relay runs without a gateway, and a warning names the keys that only a gateway uses",
  }),
  quic: key(quic.exactOptional(), {
    expects: "a mapping",
    meaning:
      "QUIC ingress: submissions over QUIC (docs/quic.md). Requires `http` and the optional package " +
      "`@matrixai/quic`.",
    absent: "submissions arrive over HTTP and WebSocket only",
  }),
  operations: key(operations.prefault({}), {
    expects: "a mapping",
    meaning: "Access to metrics and readiness checks.",
  }),
  data: key(data.prefault({}), { expects: "a mapping", meaning: "Database and retention." }),
  tips: key(tips.prefault({}), {
    expects: "a mapping",
    meaning: "Tip addresses and minimum tip.",
  }),
  tiers: key(tiers.prefault({}), {
    expects: "a mapping",
    meaning: "Tiers that registered tips buy.",
  }),
  delivery: key(delivery.prefault({}), {
    expects: "a mapping",
    meaning: "Delivery of shreds to the accounts' destinations.",
  }),
  region: key(name().exactOptional(), {
    expects: "a name of regions",
    meaning: "Region of this machine. getTipAccounts lists the tip addresses of this region.",
    absent: "`delivery.region`, if it is one of `regions`; otherwise the first of `regions`",
  }),
  regions: key(z.array(region).max(64).default([]), {
    expects: "a list of at most 64 regions",
    meaning:
      "Regions of the service. Each region lists its own tip addresses, and a tip to any " +
      "of them counts in every region.",
  }),
  gateway: key(gateway.prefault({}), {
    expects: "a mapping",
    meaning: "Limits and options for submissions.",
  }),
  nonces: key(nonces.prefault({}), {
    expects: "a mapping",
    meaning: "Durable nonce accounts that the service manages for its API keys.",
  }),
  tracker: key(tracker.prefault({}), {
    expects: "a mapping",
    meaning: "Leaders of the alternative partner.",
  }),
  portal: key(portal.prefault({}), {
    expects: "a mapping",
    meaning: "Web portal on the gateway's addresses.",
  }),
  routes: key(z.array(route).max(64).default([]), {
    expects: "a list of at most 64 routes",
    meaning:
      "Routes for submissions. A reload applies changes; an unchanged route keeps its queue.",
  }),
});
keyDocuments.add(configSchema, {
  expects:
    "a mapping with the section relay and, optional, solana, shredstream, streams, http, quic, operations, data, tips, tiers, delivery, region, regions, gateway, nonces, tracker, portal, routes",
  meaning: "The configuration file.",
});

/** The effective configuration: defaults filled in, paths absolute. */
export type Config = z.output<typeof configSchema>;
export type RelayConfig = Config["relay"];
export type SolanaConfig = NonNullable<Config["solana"]>;
export type RouteConfig = Config["routes"][number];

/**
 * Removes the wrappers of a schema (default, optional, list of one) down to the part that has the
 * keys.
 */
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
