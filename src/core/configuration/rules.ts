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
  report: (place: number, first: number) => void,
): void {
  const firstPlace = new Map<string, number>();
  for (const [place, value] of values.entries()) {
    const key = keyOf(value);
    if (key === undefined) continue;
    const first = firstPlace.get(key);
    if (first === undefined) firstPlace.set(key, place);
    else report(place, first);
  }
}

function checkListeners(relay: RelayConfig, report: Report): void {
  const endpoints = relay.listen.map((text) => parseEndpoint(text, { allowPortZero: true }));
  checkDistinct(
    endpoints,
    (endpoint) => (endpoint.port === 0 ? undefined : formatEndpoint(endpoint)),
    (place, first) =>
      report(
        ["listen", place],
        `expected every address once, got ${relay.listen[place]} as listen[${first}] already`,
      ),
  );
  for (const [place, endpoint] of endpoints.entries()) {
    if (endpoint.port === 0 && relay.workers > 1) {
      report(
        ["listen", place],
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
  checkDistinct(cpus, String, (place) =>
    report(["cpus", place], `expected every CPU once, got ${cpus[place]} again`),
  );
}

function checkTiers(relay: RelayConfig, report: Report): void {
  checkDistinct(
    relay.tiers,
    (tier) => tier,
    (place) =>
      report(["tiers", place], `expected every tier once, got ${quote(relay.tiers[place])} again`),
  );
  for (const list of ["sources", "destinations"] as const) {
    for (const [place, { tier }] of relay[list].entries()) {
      if (relay.tiers.includes(tier)) continue;
      const expected = `expected a tier of relay.tiers: ${relay.tiers.join(", ")}`;
      report([list, place, "tier"], `${expected}; got ${quote(tier)}`);
    }
  }
}

function rangeKey(range: AddressRange | undefined, port: number | undefined): string {
  const text = range ? `${Buffer.from(range.bytes).toString("hex")}/${range.prefixBits}` : "any";
  return `${text}:${port ?? "any"}`;
}

function checkSources(relay: RelayConfig, report: Report): void {
  const ports = relay.listen.map((text) => parseEndpoint(text, { allowPortZero: true }).port);
  for (const [place, { address, port }] of relay.sources.entries()) {
    if (address === undefined && port === undefined) {
      report(["sources", place], "expected an address, a port, or both, got neither");
    }
    if (port !== undefined && !ports.includes(port)) {
      const expected = `expected a port of relay.listen: ${ports.join(", ")}`;
      report(["sources", place, "port"], `${expected}; got ${port}`);
    }
  }
  checkDistinct(
    relay.sources,
    ({ name }) => name,
    (place, first) =>
      report(
        ["sources", place, "name"],
        `expected every name once, got ${quote(relay.sources[place]?.name)} as sources[${first}] already`,
      ),
  );
  checkDistinct(
    relay.sources,
    ({ address, port }) =>
      address === undefined && port === undefined
        ? undefined
        : rangeKey(address === undefined ? undefined : parseAddressRange(address), port),
    (place, first) =>
      report(
        ["sources", place],
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
  for (const [place, { address }] of relay.destinations.entries()) {
    const endpoint = parseEndpoint(address);
    const refusal = destinationRefusal(endpoint.bytes, relay.allowPrivateDestinations);
    const path = ["destinations", place, "address"];
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
  for (const [place, { recovered }] of relay.destinations.entries()) {
    if (!recovered || relay.deshred) continue;
    report(["destinations", place, "recovered"], "expected relay.deshred: true with it, got false");
  }
  checkDistinct(
    relay.destinations,
    ({ address }) => formatEndpoint(parseEndpoint(address)),
    (place, first) =>
      report(
        ["destinations", place, "address"],
        `expected every address once, got ${relay.destinations[place]?.address} as ` +
          `destinations[${first}] already`,
      ),
  );
  checkDistinct(
    relay.destinations,
    ({ name }) => name,
    (place, first) =>
      report(
        ["destinations", place, "name"],
        `expected every name once, got ${quote(relay.destinations[place]?.name)} as ` +
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
      (place, first) =>
        report(
          [list, place, "name"],
          `expected every name once, got ${quote(config[list][place]?.name)} as ${list}[${first}] already`,
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
  for (const place of routes.keys()) checkRoute(config, place, report);
}

/** All addresses of the HTTP listeners. With port 0 the kernel chooses the port. */
function checkHttpListeners({ http, operations }: Config, report: Report): void {
  const all: [path: (string | number)[], text: string][] = [];
  const add = (path: (string | number)[], texts: readonly string[]): void => {
    for (const [place, text] of texts.entries()) all.push([[...path, place], text]);
  };
  add(["http", "listen"], http?.listen ?? []);
  for (const [place, { listen }] of (http?.split ?? []).entries()) {
    add(["http", "split", place, "listen"], listen);
  }
  add(["operations", "listen"], operations.listen ?? []);
  checkDistinct(
    all,
    ([, text]) => {
      const endpoint = parseEndpoint(text, { allowPortZero: true });
      return endpoint.port === 0 ? undefined : formatEndpoint(endpoint);
    },
    (place) => {
      const [path, text] = all[place] ?? [[], ""];
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
    (place) =>
      report(
        ["delivery", "regions", place],
        `expected every region once, got ${quote(regions[place])} again`,
      ),
  );
  if (region !== undefined && !regions.includes(region)) {
    const expected = `expected a name of delivery.regions: ${regions.join(", ")}`;
    report(["delivery", "region"], `${expected}; got ${quote(region)}`);
  }
}

const keysOfHttp = ["url", "leaders"] as const;
const keysOfQuic = ["identityFile", "quicAddresses"] as const;

function checkRoute({ solana, routes }: Config, place: number, report: Report): void {
  const route = routes[place];
  if (!route) return;
  const { kind, url, leaders, bundles, transactions, quicPorts } = route;
  const isPartner = kind === "alt-partner";
  const isOverQuic = kind === "tpu" || (isPartner && quicPorts !== undefined);
  for (const key of ["leaders", "quicPorts"] as const) {
    if (isPartner || route[key] === undefined) continue;
    report(["routes", place, key], `expected kind alt-partner with it, got ${kind}`);
  }
  for (const key of isOverQuic ? keysOfHttp : keysOfQuic) {
    if (route[key] === undefined) continue;
    const [expected, got] = isOverQuic ? ["HTTP", "QUIC"] : ["QUIC", "HTTP"];
    report(
      ["routes", place, key],
      `expected a route over ${expected} with it, got one over ${got}`,
    );
  }
  if (!isOverQuic && (url === undefined) === (leaders === undefined)) {
    const got = url === undefined ? "neither" : "both";
    const expected = isPartner ? "either url or leaders or quicPorts" : "url";
    report(["routes", place], `expected ${expected}, got ${got}`);
  }
  if (isOverQuic && Object.keys(route.headers).length > 0) {
    report(["routes", place, "headers"], "expected a route over HTTP with it, got one over QUIC");
  }
  if (isOverQuic && !solana && !route.quicAddresses) {
    report(["routes", place], "expected solana.rpc or quicAddresses with it, got neither");
  }
  const headers = routeHeadersProblem(route.headers);
  if (headers !== null) report(["routes", place, "headers"], headers);
  if (!transactions && !(kind === "block-builder" && bundles)) {
    report(
      ["routes", place],
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
