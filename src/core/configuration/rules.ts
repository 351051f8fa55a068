// Configuration rules: conditions between the keys of a well-formed configuration.
//
// Called by configuration.ts after the schema. Returns problems and never throws, so that an
// operator sees all problems of a file together.

import { destinationRefusal } from "../addresses/address-classes.ts";
import {
  type AddressRange,
  formatEndpoint,
  parseAddressRange,
  parseEndpoint,
} from "../addresses/addresses.ts";
import { listenerReachedBy } from "../addresses/own-addresses.ts";
import { quote } from "../errors.ts";
import { routeHeadersProblem } from "./route-headers.ts";
import type { Config, RelayConfig } from "./schema.ts";
import { thresholdsOf } from "./schema-delivery.ts";

export interface ConfigProblem {
  /** Keys and list positions, from the top. */
  readonly path: readonly (string | number)[];
  /** Text of the form "expected …, got …". */
  readonly message: string;
}

type Report = (path: readonly (string | number)[], message: string) => void;

/** Reports every value that occurs twice. */
function checkDistinct<T>(
  values: readonly T[],
  keyOf: (value: T) => string | undefined,
  report: (index: number, first: number) => void,
): void {
  const firstIndex = new Map<string, number>();
  for (const [index, value] of values.entries()) {
    const key = keyOf(value);
    if (key === undefined) continue;
    const first = firstIndex.get(key);
    if (first === undefined) firstIndex.set(key, index);
    else report(index, first);
  }
}

function checkListeners(relay: RelayConfig, report: Report): void {
  const endpoints = relay.listen.map((text) => parseEndpoint(text, { allowPortZero: true }));
  checkDistinct(
    endpoints,
    (endpoint) => (endpoint.port === 0 ? undefined : formatEndpoint(endpoint)),
    (index, first) =>
      report(
        ["listen", index],
        `expected every address once, got ${relay.listen[index]} as listen[${first}] already`,
      ),
  );
  for (const [index, endpoint] of endpoints.entries()) {
    if (endpoint.port === 0 && relay.workers > 1) {
      report(
        ["listen", index],
        `expected a port other than 0 with ${relay.workers} workers, which share it, got 0`,
      );
    }
  }
}

function checkWorkers(relay: RelayConfig, report: Report): void {
  const { cpus, workers } = relay;
  if (!cpus) return;
  if (cpus.length !== workers) {
    report(["cpus"], `expected one CPU per worker, ${workers} in all, got ${cpus.length}`);
  }
  checkDistinct(cpus, String, (index) =>
    report(["cpus", index], `expected every CPU once, got ${cpus[index]} again`),
  );
}

function checkTiers(relay: RelayConfig, report: Report): void {
  checkDistinct(
    relay.tiers,
    (tier) => tier,
    (index) =>
      report(["tiers", index], `expected every tier once, got ${quote(relay.tiers[index])} again`),
  );
  for (const list of ["sources", "destinations"] as const) {
    for (const [index, { tier }] of relay[list].entries()) {
      if (relay.tiers.includes(tier)) continue;
      const expected = `expected a tier of relay.tiers: ${relay.tiers.join(", ")}`;
      report([list, index, "tier"], `${expected}; got ${quote(tier)}`);
    }
  }
}

function rangeKey(range: AddressRange | undefined, port: number | undefined): string {
  const text = range ? `${Buffer.from(range.bytes).toString("hex")}/${range.prefixBits}` : "any";
  return `${text}:${port ?? "any"}`;
}

function checkSources(relay: RelayConfig, report: Report): void {
  const ports = relay.listen.map((text) => parseEndpoint(text, { allowPortZero: true }).port);
  for (const [index, { address, port }] of relay.sources.entries()) {
    if (address === undefined && port === undefined) {
      report(["sources", index], "expected an address, a port, or both, got neither");
    }
    if (port !== undefined && !ports.includes(port)) {
      const expected = `expected a port of relay.listen: ${ports.join(", ")}`;
      report(["sources", index, "port"], `${expected}; got ${port}`);
    }
  }
  checkDistinct(
    relay.sources,
    ({ name }) => name,
    (index, first) =>
      report(
        ["sources", index, "name"],
        `expected every name once, got ${quote(relay.sources[index]?.name)} as sources[${first}] already`,
      ),
  );
  checkDistinct(
    relay.sources,
    ({ address, port }) =>
      address === undefined && port === undefined
        ? undefined
        : rangeKey(address === undefined ? undefined : parseAddressRange(address), port),
    (index, first) =>
      report(
        ["sources", index],
        `expected another address or port than every other source, got those of sources[${first}]`,
      ),
  );
}

function checkDestinations(
  relay: RelayConfig,
  ownAddresses: readonly string[],
  report: Report,
): void {
  const listeners = relay.listen.map((text) => parseEndpoint(text, { allowPortZero: true }));
  for (const [index, { address }] of relay.destinations.entries()) {
    const endpoint = parseEndpoint(address);
    const refusal = destinationRefusal(endpoint.bytes, relay.allowPrivateDestinations);
    const path = ["destinations", index, "address"];
    if (refusal !== undefined) {
      const remedy = relay.allowPrivateDestinations
        ? ""
        : " (allowPrivateDestinations: true allows all but unspecified ones)";
      report(path, `expected a public address, got ${address}: ${refusal}${remedy}`);
    } else if (listenerReachedBy(endpoint, listeners, ownAddresses)) {
      report(
        path,
        `expected another address than those that the relay itself listens on (relay.listen: ` +
          `${relay.listen.join(", ")}), got ${address}`,
      );
    }
  }
  for (const [index, { recovered }] of relay.destinations.entries()) {
    if (!recovered || relay.deshred) continue;
    report(["destinations", index, "recovered"], "expected relay.deshred: true with it, got false");
  }
  checkDistinct(
    relay.destinations,
    ({ address }) => formatEndpoint(parseEndpoint(address)),
    (index, first) =>
      report(
        ["destinations", index, "address"],
        `expected every address once, got ${relay.destinations[index]?.address} as ` +
          `destinations[${first}] already`,
      ),
  );
  checkDistinct(
    relay.destinations,
    ({ name }) => name,
    (index, first) =>
      report(
        ["destinations", index, "name"],
        `expected every name once, got ${quote(relay.destinations[index]?.name)} as ` +
          `destinations[${first}] already`,
      ),
  );
}

function checkAuthentication({ relay, solana }: Config, report: Report): void {
  if (relay.authentication === "leader-schedule" && !relay.leaders && !solana) {
    report(
      ["leaders"],
      "expected leaders.file, or solana.rpc beside relay, because authentication is leader-schedule (authentication: off " +
        "forwards every well-formed shred), got nothing",
    );
  }
}

function checkGateway(config: Config, report: Report): void {
  const { http, tips, regions, region, routes } = config;
  const distinctNames = (list: "regions" | "routes") =>
    checkDistinct<{ readonly name: string }>(
      config[list],
      ({ name }) => name,
      (index, first) =>
        report(
          [list, index, "name"],
          `expected every name once, got ${quote(config[list][index]?.name)} as ${list}[${first}] already`,
        ),
    );
  distinctNames("regions");
  distinctNames("routes");
  if (region !== undefined && !regions.some(({ name }) => name === region)) {
    const known = regions.map(({ name }) => name).join(", ") || "none is given";
    report(["region"], `expected a name of regions (${known}), got ${quote(region)}`);
  }
  const tipless =
    tips.addresses.length === 0 && regions.every((one) => one.tipAddresses.length === 0);
  if (http && tipless) {
    report(["tips", "addresses"], "expected at least one address, because http is given, got none");
  }
  for (const index of routes.keys()) checkRoute(config, index, report);
}

/** All addresses of the HTTP listeners. With port 0 the kernel chooses the port. */
function checkHttpListeners({ http, operations }: Config, report: Report): void {
  const all: [path: (string | number)[], text: string][] = [];
  const add = (path: (string | number)[], texts: readonly string[]): void => {
    for (const [index, text] of texts.entries()) all.push([[...path, index], text]);
  };
  add(["http", "listen"], http?.listen ?? []);
  for (const [index, { listen }] of (http?.split ?? []).entries()) {
    add(["http", "split", index, "listen"], listen);
  }
  add(["operations", "listen"], operations.listen ?? []);
  checkDistinct(
    all,
    ([, text]) => {
      const endpoint = parseEndpoint(text, { allowPortZero: true });
      return endpoint.port === 0 ? undefined : formatEndpoint(endpoint);
    },
    (index) => {
      const [path, text] = all[index] ?? [[], ""];
      report(path, `expected every address once, got ${text} again`);
    },
  );
}

function checkNonces({ solana, nonces }: Config, report: Report): void {
  const { fundingKeyFile, authorityKeyFile } = nonces;
  if (fundingKeyFile !== undefined && !solana) {
    report(["nonces", "fundingKeyFile"], "expected solana.rpc with it, got none");
  }
  if (authorityKeyFile !== undefined && fundingKeyFile === undefined) {
    report(["nonces", "authorityKeyFile"], "expected fundingKeyFile with it, got none");
  }
}

function checkThresholds({ relay, tiers }: Config, report: Report): void {
  const given = tiers.thresholdLamports;
  const pathOf = (tier: string) => ["tiers", "thresholdLamports", tier];
  for (const tier of Object.keys(given ?? {})) {
    if (relay.tiers.includes(tier)) continue;
    const expected = `expected a tier of relay.tiers: ${relay.tiers.join(", ")}`;
    report(pathOf(tier), `${expected}; got ${quote(tier)}`);
  }
  let least = 1;
  for (const [tier, threshold] of thresholdsOf(relay.tiers, given)) {
    if (threshold < least) {
      const message = `expected at least ${least}, more than a narrower tier, got ${threshold}`;
      report(pathOf(tier), message);
    }
    least = Math.max(least, threshold + 1);
  }
}

function checkDelivery({ delivery }: Config, report: Report): void {
  const { regions, region } = delivery;
  checkDistinct(
    regions,
    (one) => one,
    (index) =>
      report(
        ["delivery", "regions", index],
        `expected every region once, got ${quote(regions[index])} again`,
      ),
  );
  if (region !== undefined && !regions.includes(region)) {
    const expected = `expected a name of delivery.regions: ${regions.join(", ")}`;
    report(["delivery", "region"], `${expected}; got ${quote(region)}`);
  }
}

const keysOfHttp = ["url", "leaders"] as const;
const keysOfQuic = ["identityFile", "quicAddresses"] as const;

function checkRoute({ solana, routes }: Config, index: number, report: Report): void {
  const route = routes[index];
  if (!route) return;
  const { kind, url, leaders, bundles, transactions, quicPorts } = route;
  const isPartner = kind === "alt-partner";
  const isOverQuic = kind === "tpu" || (isPartner && quicPorts !== undefined);
  for (const key of ["leaders", "quicPorts"] as const) {
    if (isPartner || route[key] === undefined) continue;
    report(["routes", index, key], `expected kind alt-partner with it, got ${kind}`);
  }
  for (const key of isOverQuic ? keysOfHttp : keysOfQuic) {
    if (route[key] === undefined) continue;
    const [expected, got] = isOverQuic ? ["HTTP", "QUIC"] : ["QUIC", "HTTP"];
    report(
      ["routes", index, key],
      `expected a route over ${expected} with it, got one over ${got}`,
    );
  }
  if (!isOverQuic && (url === undefined) === (leaders === undefined)) {
    const got = url === undefined ? "neither" : "both";
    const expected = isPartner ? "either url or leaders or quicPorts" : "url";
    report(["routes", index], `expected ${expected}, got ${got}`);
  }
  if (isOverQuic && Object.keys(route.headers).length > 0) {
    report(["routes", index, "headers"], "expected a route over HTTP with it, got one over QUIC");
  }
  if (isOverQuic && !solana && !route.quicAddresses) {
    report(["routes", index], "expected solana.rpc or quicAddresses with it, got neither");
  }
  const headers = routeHeadersProblem(route.headers);
  if (headers !== null) report(["routes", index, "headers"], headers);
  if (!transactions && !(kind === "block-builder" && bundles)) {
    report(
      ["routes", index],
      "expected transactions: true, or a block-builder with bundles: true, got transactions: false",
    );
  }
}

/**
 * All problems between the keys, in the order of the file's sections. `ownAddresses` are this
 * machine's addresses, on which a listener on an unspecified address is reachable.
 */
export function checkConfig(config: Config, ownAddresses: readonly string[] = []): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const report: Report = (path, message) => problems.push({ path: ["relay", ...path], message });
  const reportAnywhere: Report = (path, message) => problems.push({ path, message });
  checkGateway(config, reportAnywhere);
  checkThresholds(config, reportAnywhere);
  checkHttpListeners(config, reportAnywhere);
  checkNonces(config, reportAnywhere);
  checkDelivery(config, reportAnywhere);
  checkListeners(config.relay, report);
  checkWorkers(config.relay, report);
  checkTiers(config.relay, report);
  checkAuthentication(config, report);
  checkSources(config.relay, report);
  checkDestinations(config.relay, ownAddresses, report);
  return problems;
}
