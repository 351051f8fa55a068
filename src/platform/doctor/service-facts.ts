// Facts about the gateway's configuration: files, the data folder, ports, the database, the node, the
// partners.
//
// Called by src/tools/commands/doctor.ts. Connects and queries with a time limit each. Submits and
// stores nothing.

import {
  accessSync,
  closeSync,
  constants,
  fsyncSync,
  openSync,
  statfsSync,
  statSync,
  writeSync,
} from "node:fs";
import { createServer } from "node:net";
import { dirname } from "node:path";
import { formatAddress, formatEndpoint, parseEndpoint } from "../../core/addresses/addresses.ts";
import type { Clock } from "../../core/clock.ts";
import {
  type Config,
  configFileBytesMax,
  secretFilesOf,
} from "../../core/configuration/configuration.ts";
import { holdsInlineSecrets } from "../../core/configuration/secrets.ts";
import { describeListenerKey, tcpListenersOf } from "../../core/configuration/tcp-listeners.ts";
import { maskerOf } from "../../core/configuration/url-secrets.ts";
import { parseYaml } from "../../core/configuration/yaml-text.ts";
import { messageOf } from "../../core/errors.ts";
import { readTextFile } from "../../core/files.ts";
import { readTlsMaterial, type TlsFiles } from "../../core/tls-material.ts";
import { isObject } from "../../core/values.ts";
import { checkServerCredentials } from "../../gateway/quic/server-credentials.ts";
import { coveredSlots, loadLeaderSchedule } from "../../relay/leaders/schedule.ts";
import { RpcClient } from "../solana/rpc-client.ts";
import { type PostgresProbe, probePostgres } from "../store/postgres/probe.ts";
import { connectFact } from "./connect-fact.ts";
import {
  type FileFact,
  fileFact,
  type KeyedPortFact,
  type PortFact,
  portFault,
} from "./file-facts.ts";

interface FolderFact {
  readonly path: string;
  /** null: it does not exist yet. */
  readonly mode: number | null;
  readonly isOwn: boolean;
  /** Whether this user may create files in it, or the folder itself if it does not exist. */
  readonly isWritable: boolean;
  /** For a folder that does not exist: in the nearest one that does; null: unknown. */
  readonly freeBytes: number | null;
  /** Median time of a few small synchronous writes; null: not measured. */
  readonly syncMs: number | null;
}

interface NodeFact {
  readonly host: string;
  readonly error: string | null;
  readonly answerMs: number;
  readonly slot: bigint | null;
  /** The version of most nodes of its cluster; null: unknown. */
  readonly shredVersion: number | null;
}

interface RouteFact {
  readonly name: string;
  /** "https://host:port" */
  readonly target: string;
  readonly error: string | null;
  readonly connectMs: number;
}

/** The TLS certificate and its key. */
interface CertificateFact {
  /** Section of the configuration. */
  readonly section: "http.tls" | "quic.tls" | "streams.tls" | "shredstream.tls";
  readonly path: string;
  /** Time until it expires; null: `error`. */
  readonly leftMs: number | null;
  readonly error: string | null;
}

export interface ServiceFacts {
  /** The configuration file itself contains keys or passwords. */
  readonly configHoldsSecrets: boolean;
  readonly configMode: number | null;
  readonly secretFiles: readonly FileFact[];
  readonly keyFiles: readonly FileFact[];
  /** null: no gateway, or PostgreSQL stores everything. */
  readonly folder: FolderFact | null;
  readonly tcpPorts: readonly KeyedPortFact[];
  /** Certificates from files, with their keys. */
  readonly certificates: readonly CertificateFact[];
  readonly postgres: readonly PostgresProbe[];
  readonly node: NodeFact | null;
  readonly routes: readonly RouteFact[];
  /** Last slot of the schedule in a file; null: no schedule. */
  readonly lastLeaderSlot: bigint | null;
}

const askMs = 3000;
const nodesBytesMax = 32 * 1024 * 1024;
const syncTries = 5;
/** Linux's flag for a file without a name, which disappears when it is closed. */
const temporaryFile = constants.O_DIRECTORY | 0o20000000;

export async function readServiceFacts(
  file: string,
  config: Config,
  clock: Clock,
): Promise<ServiceFacts> {
  const { data, http, nonces, routes, relay, solana } = config;
  const tlsSections = tlsSectionsOf(config);
  const keyFiles = [
    nonces.fundingKeyFile,
    nonces.authorityKeyFile,
    ...routes.map(({ identityFile }) => identityFile),
    ...relay.sources.map(({ shredstream }) => shredstream?.keyFile),
  ].filter((path) => path !== undefined);
  const [tcpPorts, postgres, node, routeFacts] = await Promise.all([
    tcpPortFacts(config, file),
    data.postgres === undefined ? [] : probePostgres(data.postgres, clock),
    solana ? nodeFact(solana.rpc, clock) : null,
    Promise.all(targetsOf(config).map((target) => routeFact(target, clock))),
  ]);
  return {
    configHoldsSecrets: configHoldsSecrets(file),
    configMode: fileFact(file).mode,
    // A group may read the key of TLS: the ACME client and the service are different users.
    secretFiles: [
      ...new Set([...secretFilesOf(file), ...tlsSections.map(({ files }) => files.key)]),
    ].map(fileFact),
    keyFiles: [...new Set(keyFiles)].map(fileFact),
    folder: http && data.postgres === undefined ? folderFact(data.directory, clock) : null,
    tcpPorts,
    certificates: tlsSections.map((section) => certificateFact(section, clock)),
    postgres,
    node,
    routes: routeFacts,
    lastLeaderSlot: lastSlotOf(relay.leaders?.file),
  };
}

function configHoldsSecrets(file: string): boolean {
  const text = readTextFile(file, configFileBytesMax, "config_invalid");
  return holdsInlineSecrets(parseYaml(text, file).file);
}

interface TlsSection extends Pick<CertificateFact, "section"> {
  readonly files: TlsFiles;
}

function tlsSectionsOf({ http, quic, streams, shredstream }: Config): TlsSection[] {
  const optional = (section: TlsSection["section"], files: TlsFiles | undefined) =>
    files ? [{ section, files }] : [];
  return [
    ...optional("http.tls", http?.tls),
    ...optional("quic.tls", quic?.tls),
    ...optional("streams.tls", streams?.tls),
    ...optional("shredstream.tls", shredstream?.tls),
  ];
}

function certificateFact({ section, files }: TlsSection, clock: Clock): CertificateFact {
  const { certificate: path } = files;
  try {
    const material = readTlsMaterial(files);
    if (section === "quic.tls") checkServerCredentials(material, `${files.key} and ${path}`);
    const leftMs = material.expiresMs - Number(clock.nowNs() / 1_000_000n);
    return { section, path, leftMs, error: null };
  } catch (error) {
    return { section, path, leftMs: null, error: messageOf(error) };
  }
}

function lastSlotOf(file: string | undefined): bigint | null {
  try {
    return file === undefined ? null : coveredSlots(loadLeaderSchedule(file)).last;
  } catch {
    return null; // config-checks.ts reports its errors
  }
}

function folderFact(path: string, clock: Clock): FolderFact {
  try {
    const found = statSync(path, { throwIfNoEntry: false });
    const existing = found ? path : nearestFolder(path);
    const { bavail, bsize } = statfsSync(existing);
    return {
      path,
      mode: found ? found.mode & 0o777 : null,
      isOwn: found?.uid === process.getuid?.(),
      isWritable: isWritable(existing),
      freeBytes: bavail * bsize,
      syncMs: syncMs(existing, clock),
    };
  } catch {
    const unknown = { mode: null, isOwn: false, freeBytes: null, syncMs: null };
    return { path, isWritable: false, ...unknown };
  }
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** The nearest folder that exists, in which the service creates a missing one. Throws if it is not a folder. */
function nearestFolder(path: string): string {
  const parent = dirname(path);
  const found = statSync(parent, { throwIfNoEntry: false });
  if (!found) return nearestFolder(parent);
  if (!found.isDirectory()) throw new Error(`${parent}: expected a folder`);
  return parent;
}

/** Uses a file without a name, so nothing remains in any case. */
function syncMs(folder: string, clock: Clock): number | null {
  try {
    const file = openSync(folder, temporaryFile | constants.O_RDWR, 0o600);
    try {
      const block = Buffer.alloc(4096, 1);
      const times = Array.from({ length: syncTries }, () => {
        const beganNs = clock.monotonicNs();
        writeSync(file, block);
        fsyncSync(file);
        return Number(clock.monotonicNs() - beganNs) / 1e6;
      });
      return times.toSorted((a, b) => a - b)[Math.floor(syncTries / 2)] ?? null;
    } finally {
      closeSync(file);
    }
  } catch {
    return null;
  }
}

/** One after the other: two attempts at the same port would find each other. */
async function tcpPortFacts(config: Config, file: string): Promise<KeyedPortFact[]> {
  const facts: KeyedPortFact[] = [];
  for (const listener of tcpListenersOf(config)) {
    const fact = await tcpPortFact(listener.address, file);
    facts.push({ ...fact, key: describeListenerKey(listener) });
  }
  return facts;
}

function tcpPortFact(address: string, file: string): Promise<PortFact> {
  const endpoint = parseEndpoint(address, { allowPortZero: true });
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", (error) => {
      resolve({ address, ...portFault(endpoint, error, { protocol: "tcp", file }) });
    });
    server.listen(
      { host: formatAddress(endpoint.bytes), port: endpoint.port, exclusive: true },
      () => server.close(() => resolve({ address: formatEndpoint(endpoint), error: null })),
    );
  });
}

async function nodeFact(url: string, clock: Clock): Promise<NodeFact> {
  const client = new RpcClient(url, askMs);
  const { host } = new URL(url);
  const beganNs = clock.monotonicNs();
  try {
    const { absoluteSlot } = await client.epochInfo();
    const answerMs = Number(clock.monotonicNs() - beganNs) / 1e6;
    const shredVersion = await shredVersionOf(client);
    return { host, error: null, answerMs, slot: absoluteSlot, shredVersion };
  } catch (error) {
    const answerMs = Number(clock.monotonicNs() - beganNs) / 1e6;
    const text = maskerOf(new URL(url))(messageOf(error));
    return { host, error: text, answerMs, slot: null, shredVersion: null };
  }
}

/** The value of most nodes; there are always some nodes of another fork. */
async function shredVersionOf(client: RpcClient): Promise<number | null> {
  try {
    const nodes = await client.call("getClusterNodes", [], nodesBytesMax);
    const counts = new Map<number, number>();
    for (const node of Array.isArray(nodes) ? nodes : []) {
      const version: unknown = isObject(node) ? node["shredVersion"] : undefined;
      if (typeof version === "number") counts.set(version, (counts.get(version) ?? 0) + 1);
    }
    return [...counts].toSorted((a, b) => b[1] - a[1])[0]?.[0] ?? null;
  } catch {
    return null; // not every node supports it
  }
}

function targetsOf({ routes }: Config): { name: string; url: string }[] {
  return routes.flatMap(({ name, url, leaders = {} }) =>
    [...(url === undefined ? [] : [url]), ...Object.values(leaders)].map((one) => ({
      name,
      url: one,
    })),
  );
}

/** Only connects, because a request to a partner may cost money. */
async function routeFact(
  { name, url }: { name: string; url: string },
  clock: Clock,
): Promise<RouteFact> {
  const { protocol, host } = new URL(url);
  const { error, connectMs } = await connectFact(url, clock);
  return { name, target: `${protocol}//${host}`, error, connectMs };
}
