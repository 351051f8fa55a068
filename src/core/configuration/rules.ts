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
import { checkExclusion } from "./bound-listeners.ts";
import { checkDistinct } from "./distinct-values.ts";
import { isMulticastSource, sourceKindProblems } from "./relay-sources.ts";
import { routeHeadersProblem } from "./route-headers.ts";
import { checkQuic } from "./rules-quic.ts";
import { checkShredstream } from "./rules-shredstream.ts";
import { checkStreams } from "./rules-streams.ts";
import { checkSubscribers } from "./rules-subscribers.ts";
import { checkTcpListeners } from "./rules-tcp-listeners.ts";
import { checkUdpListeners } from "./rules-udp-listeners.ts";
import { checkXdp } from "./rules-xdp.ts";
import type { Config, RelayConfig } from "./schema.ts";
import { thresholdsOf } from "./schema-delivery.ts";

export interface ConfigProblem {
  /** Keys and list positions, from the top. */
  readonly path: readonly (string | number)[];
  /** Text of the form "expected …, got …". */
  readonly message: string;
}

type Report = (path: readonly (string | number)[], message: string) => void;

function checkListeners(relay: RelayConfig, report: Report): void {
  const own = relay.listen.map((address, index) => ({
    path: ["listen", index],
    place: `listen[${index}]`,
    address,
    endpoint: parseEndpoint(address, { allowPortZero: true }),
  }));
  checkExclusion({ own }, { takesBothFamilies: false }, report);
  for (const [index, { endpoint }] of own.entries()) {
    if (endpoint.port === 0 && relay.workers > 1) {
      report(
        ["listen", index],
        `port 0 is not allowed with ${relay.workers} workers, because they share the port; expected 1 to 65535`,
      );
    }
  }
}

function checkWorkers(relay: RelayConfig, report: Report): void {
  const { cpus, workers } = relay;
  if (!Array.isArray(cpus)) return;
  if (cpus.length !== workers) {
    report(["cpus"], `${cpus.length} for ${workers} workers; expected one CPU per worker`);
  }
  checkDistinct(cpus, String, (index) =>
    report(["cpus", index], `duplicate CPU ${cpus[index]}; expected different CPUs`),
  );
}

function checkTiers(relay: RelayConfig, report: Report): void {
  checkDistinct(
    relay.tiers,
    (tier) => tier,
    (index) =>
      report(
        ["tiers", index],
        `duplicate tier ${quote(relay.tiers[index])}; expected different tiers`,
      ),
  );
  if (relay.discovery && !relay.tiers.includes(relay.discovery.tier)) {
    const expected = `expected a tier of relay.tiers: ${relay.tiers.join(", ")}`;
    report(["discovery", "tier"], `unknown tier ${quote(relay.discovery.tier)}; ${expected}`);
  }
  for (const list of ["sources", "destinations"] as const) {
    for (const [index, { tier }] of relay[list].entries()) {
      if (relay.tiers.includes(tier)) continue;
      const expected = `expected a tier of relay.tiers: ${relay.tiers.join(", ")}`;
      report([list, index, "tier"], `unknown tier ${quote(tier)}; ${expected}`);
    }
  }
}

function rangeKey(range: AddressRange | undefined, port: number | undefined): string {
  const text = range ? `${Buffer.from(range.bytes).toString("hex")}/${range.prefixBits}` : "any";
  return `${text}:${port ?? "any"}`;
}

function checkSources(relay: RelayConfig, report: Report): void {
  const ports = relay.listen.map((text) => parseEndpoint(text, { allowPortZero: true }).port);
  for (const { index, key, message } of sourceKindProblems(relay.sources, relay.listen))
    report(["sources", index, ...(key === undefined ? [] : [key])], message);
  for (const [index, source] of relay.sources.entries()) {
    if (isMulticastSource(source)) continue;
    const { kind, address, port } = source;
    if (kind !== "shredstream" && address === undefined && port === undefined) {
      report(["sources", index], "missing address and port; expected at least one of them");
    }
    if (port !== undefined && !ports.includes(port)) {
      const expected = `expected a port of relay.listen: ${ports.join(", ")}`;
      report(["sources", index, "port"], `unknown port ${port}; ${expected}`);
    }
  }
  checkDistinct(
    relay.sources,
    ({ name }) => name,
    (index, first) =>
      report(
        ["sources", index, "name"],
        `duplicate name ${quote(relay.sources[index]?.name)} (also sources[${first}]); expected different names`,
      ),
  );
  const [onlyPort, ...otherPorts] = new Set(ports);
  checkDistinct(
    relay.sources,
    ({ kind, address, port: written }) => {
      const isDerived = kind === "shredstream" && otherPorts.length === 0;
      const port = written ?? (isDerived ? onlyPort : undefined);
      if (kind === "multicast" || (address === undefined && port === undefined)) return undefined;
      return rangeKey(address === undefined ? undefined : parseAddressRange(address), port);
    },
    (index, first) =>
      report(
        ["sources", index],
        `same address and port as sources[${first}]; expected a different address or port for each source`,
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
        : " (allowPrivateDestinations: true permits all except unspecified addresses)";
      report(path, `${refusal}; expected a public address${remedy}`);
    } else if (listenerReachedBy(endpoint, listeners, ownAddresses)) {
      report(
        path,
        `${address} is an address of relay.listen (${relay.listen.join(", ")}); expected another address`,
      );
    }
  }
  for (const [index, { recovered }] of relay.destinations.entries()) {
    if (!recovered || relay.deshred) continue;
    report(["destinations", index, "recovered"], "requires relay.deshred: true");
  }
  checkDistinct(
    relay.destinations,
    ({ address }) => formatEndpoint(parseEndpoint(address)),
    (index, first) =>
      report(
        ["destinations", index, "address"],
        `duplicate address ${relay.destinations[index]?.address} (also destinations[${first}]); ` +
          "expected different addresses",
      ),
  );
  checkDistinct(
    relay.destinations,
    ({ name }) => name,
    (index, first) =>
      report(
        ["destinations", index, "name"],
        `duplicate name ${quote(relay.destinations[index]?.name)} (also destinations[${first}]); ` +
          "expected different names",
      ),
  );
}

function checkAuthentication({ relay, solana }: Config, report: Report): void {
  if (relay.authentication === "leader-schedule" && !relay.leaders && !solana) {
    report(
      ["leaders"],
      "missing leader schedule; expected leaders.file or solana.rpc, because authentication is leader-schedule " +
        "(authentication: off forwards every well-formed shred)",
    );
  }
}

function checkDistinctNames(config: Config, list: "regions" | "routes", report: Report): void {
  checkDistinct<{ readonly name: string }>(
    config[list],
    ({ name }) => name,
    (index, first) =>
      report(
        [list, index, "name"],
        `duplicate name ${quote(config[list][index]?.name)} (also ${list}[${first}]); expected different names`,
      ),
  );
}

function checkRegions(config: Config, report: Report): void {
  const { regions, region } = config;
  checkDistinctNames(config, "regions", report);
  if (region === undefined || regions.some(({ name }) => name === region)) return;
  const known = regions.map(({ name }) => name).join(", ") || "none is configured";
  report(["region"], `unknown region ${quote(region)}; expected a name of regions (${known})`);
}

function checkTipAddresses({ http, tips, regions }: Config, report: Report): void {
  const isTipless =
    tips.addresses.length === 0 && regions.every((one) => one.tipAddresses.length === 0);
  if (!http || !isTipless) return;
  report(
    ["tips", "addresses"],
    "no tip address; expected at least one, because http is configured",
  );
}

function checkRoutes(config: Config, report: Report): void {
  checkDistinctNames(config, "routes", report);
  for (const index of config.routes.keys()) checkRoute(config, index, report);
}

function checkEngine({ http }: Config, report: Report): void {
  const { engine, keepAliveSeconds } = http ?? {};
  if (engine !== "uws" || keepAliveSeconds === undefined || keepAliveSeconds === 10) return;
  const wrong = `${keepAliveSeconds} is not possible with engine: uws`;
  report(["http", "keepAliveSeconds"], `${wrong}; expected 10, or engine: node`);
}

function checkNonces({ solana, nonces }: Config, report: Report): void {
  const { fundingKeyFile, authorityKeyFile } = nonces;
  if (fundingKeyFile !== undefined && !solana) {
    report(["nonces", "fundingKeyFile"], "requires solana.rpc");
  }
  if (authorityKeyFile !== undefined && fundingKeyFile === undefined) {
    report(["nonces", "authorityKeyFile"], "requires fundingKeyFile");
  }
}

function checkThresholds({ relay, tiers }: Config, report: Report): void {
  const given = tiers.thresholdLamports;
  const pathOf = (tier: string) => ["tiers", "thresholdLamports", tier];
  for (const tier of Object.keys(given ?? {})) {
    if (relay.tiers.includes(tier)) continue;
    const expected = `expected a tier of relay.tiers: ${relay.tiers.join(", ")}`;
    report(pathOf(tier), `unknown tier ${quote(tier)}; ${expected}`);
  }
  let least = 1;
  for (const [tier, threshold] of thresholdsOf(relay.tiers, given)) {
    if (threshold < least) {
      const message = `${threshold} is too low; expected at least ${least}, more than the next narrower tier`;
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
        `duplicate region ${quote(regions[index])}; expected different regions`,
      ),
  );
  if (region !== undefined && !regions.includes(region)) {
    const expected = `expected a name of delivery.regions: ${regions.join(", ")}`;
    report(["delivery", "region"], `unknown region ${quote(region)}; ${expected}`);
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
    report(["routes", index, key], `requires kind: alt-partner; the kind is ${kind}`);
  }
  for (const key of isOverQuic ? keysOfHttp : keysOfQuic) {
    if (route[key] === undefined) continue;
    const [expected, got] = isOverQuic ? ["HTTP", "QUIC"] : ["QUIC", "HTTP"];
    report(["routes", index, key], `requires a route over ${expected}; this route uses ${got}`);
  }
  if (!isOverQuic && (url === undefined) === (leaders === undefined)) {
    const wrong = url === undefined ? "missing address" : "url and leaders exclude each other";
    const expected = isPartner ? "either url, leaders or quicPorts" : "url";
    report(["routes", index], `${wrong}; expected ${expected}`);
  }
  if (isOverQuic && Object.keys(route.headers).length > 0) {
    report(["routes", index, "headers"], "requires a route over HTTP; this route uses QUIC");
  }
  if (isOverQuic && !solana && !route.quicAddresses) {
    report(["routes", index], "missing leader addresses; expected solana.rpc or quicAddresses");
  }
  const headers = routeHeadersProblem(route.headers);
  if (headers !== null) report(["routes", index, "headers"], headers);
  if (!transactions && !(kind === "block-builder" && bundles)) {
    report(
      ["routes", index],
      "the route accepts nothing; expected transactions: true, or kind: block-builder with bundles: true",
    );
  }
}

interface RuleOptions {
  /** This machine's addresses, on which a listener on an unspecified address is reachable. */
  readonly ownAddresses?: readonly string[];
  /** Whether the file's value of a key is valid. Rules that read another value are left out. */
  readonly isUsable?: (key: string) => boolean;
}

type Rule = readonly [reads: readonly string[], check: () => void];

/** All problems between the keys, in the order of the file's sections. */
export function checkConfig(
  config: Config,
  { ownAddresses = [], isUsable = () => true }: RuleOptions = {},
): ConfigProblem[] {
  const problems: ConfigProblem[] = [];
  const report: Report = (path, message) => problems.push({ path, message });
  const inRelay: Report = (path, message) => report(["relay", ...path], message);
  const { relay } = config;
  const rules: readonly Rule[] = [
    [["regions"], () => checkRegions(config, report)],
    [["http", "tips", "regions"], () => checkTipAddresses(config, report)],
    [["solana"], () => checkRoutes(config, report)],
    [["relay.tiers"], () => checkThresholds(config, report)],
    [
      ["http", "operations.listen", "streams", "shredstream"],
      () => checkTcpListeners(config, report),
    ],
    [["http"], () => checkEngine(config, report)],
    [["http", "quic", "relay.listen"], () => checkQuic(config, report)],
    [
      ["http", "tips", "regions", "quic", "delivery", "streams", "relay.listen"],
      () => checkUdpListeners(config, report),
    ],
    [["http", "streams", "relay.deshred", "relay.tiers"], () => checkStreams(config, report)],
    [["solana", "nonces"], () => checkNonces(config, report)],
    [["delivery.regions"], () => checkDelivery(config, report)],
    [["relay.listen", "relay.workers"], () => checkListeners(relay, inRelay)],
    [["relay.cpus", "relay.workers"], () => checkWorkers(relay, inRelay)],
    [["relay.transmit", "relay.receive", "relay.xdpInterfaces"], () => checkXdp(relay, inRelay)],
    [["relay.tiers"], () => checkTiers(relay, inRelay)],
    [["relay.tiers", "shredstream"], () => checkSubscribers(config, report)],
    [
      ["relay.authentication", "relay.leaders", "solana"],
      () => checkAuthentication(config, inRelay),
    ],
    [["relay.listen"], () => checkSources(relay, inRelay)],
    [["relay.listen", "relay.authentication"], () => checkShredstream(relay, inRelay)],
    [
      ["relay.listen", "relay.allowPrivateDestinations", "relay.deshred"],
      () => checkDestinations(relay, ownAddresses, inRelay),
    ],
  ];
  for (const [reads, check] of rules) if (reads.every(isUsable)) check();
  return problems;
}
