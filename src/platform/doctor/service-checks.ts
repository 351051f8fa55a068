// The checks of the gateway's configuration: access to its secrets, exposure, and reachability of its
// dependencies. Pure.
//
// Called by src/tools/commands/doctor.ts with the facts of service-facts.ts.

import { classifyAddress } from "../../core/addresses/address-classes.ts";
import { parseEndpoint } from "../../core/addresses/addresses.ts";
import type { Config } from "../../core/configuration/configuration.ts";
import { type TcpListener, tcpListenersOf } from "../../core/configuration/tcp-listeners.ts";
import { counted } from "../../core/counted.ts";
import { modeText, portFinding } from "./file-and-port-texts.ts";
import type { FileFact } from "./file-facts.ts";
import { about, type Finding, type Found, type Level, withMeasure } from "./finding.ts";
import type { ServiceFacts } from "./service-facts.ts";

const readableByOthers = 0o004;
const othersMask = 0o007;
const groupAndOthersMask = 0o077;
const freeBytesLeast = { warn: 2 ** 30, fail: 64 * 2 ** 20 } as const;
/** A commit waits for the disk, and registrations are answered after the commit. */
const syncMsMax = 20;
const answerMsMax = 500;
/** ACME clients renew a certificate 30 days before its end. */
const certificateDaysLeast = 21;
/** About an hour, like the warning of the service. */
const leaderSlotsLeast = 9000n;

export function checkService(config: Config, file: string, facts: ServiceFacts): Finding[] {
  const all = [
    ...secretsInFile(file, facts),
    ...facts.secretFiles.map((fact) => secretMode(fact, othersMask, "o=")),
    ...facts.keyFiles.map((fact) => secretMode(fact, groupAndOthersMask, "go=")),
    ...folder(facts),
    ...facts.tcpPorts.map((port) => portFinding(port, "-t")),
    ...facts.certificates.map(certificate),
    ...exposure(config),
    ...shredTips(config),
    ...leadersEnd(facts),
    ...postgres(facts),
    ...node(config, facts),
    ...facts.routes.map(route),
  ];
  return all.map(withMeasure);
}

function secretsInFile(file: string, { configHoldsSecrets, configMode }: ServiceFacts): Found[] {
  if (!configHoldsSecrets) return [];
  const { ok, warn } = about(
    "secret-mode",
    "Read access to this file reveals the keys and passwords in it.",
  );
  if (configMode === null || (configMode & readableByOthers) === 0)
    return [ok(`${file} contains secrets and is not readable by other users`)];
  return [
    warn(
      `${file} contains secrets and is readable by all users (${modeText(configMode)})`,
      `chmod o= ${file}, or move the secrets to separate files (docs/configuration.md, "Secrets")`,
    ),
  ];
}

function secretMode({ path, mode }: FileFact, mask: number, change: string): Found {
  const { ok, fail } = about(
    "secret-mode",
    "Read access to this file reveals the key or password in it.",
  );
  if (mode === null) return fail(`${path}: cannot be read`, `ls -l ${path}`);
  if ((mode & mask) === 0) return ok(`${path}: ${modeText(mode)}`);
  const finding = `${path}: ${modeText(mode)}, readable by other users`;
  return fail(finding, `chmod ${change} ${path}`);
}

function folder({ folder: fact }: ServiceFacts): Found[] {
  if (!fact) return [];
  const { path, mode, isOwn, isWritable, freeBytes, syncMs } = fact;
  const { ok, warn, withLevel } = about(
    "data-folder",
    "This folder contains accounts, key hashes and tips. Only the service's user may access it.",
  );
  const ofDisk = disk({ path, freeBytes, syncMs });
  if (mode === null && isWritable)
    return [ok(`${path} does not exist yet; the service creates it at startup`), ofDisk];
  if (mode === null)
    return [warn(`${path}: this user cannot read or create it`, remedyOfUser(path))];
  if (!isWritable) {
    const text = `${path}: ${modeText(mode)}, not writable by this user`;
    return [warn(text, remedyOfUser(path))];
  }
  const isOpen = (mode & groupAndOthersMask) !== 0;
  const finding = `${path}: ${modeText(mode)}${isOwn ? "" : ", owned by another user"}`;
  const remedy = isOpen ? `chmod -R go= ${path}` : null;
  return [withLevel(isOpen ? "warn" : "ok", finding, remedy), ofDisk];
}

/** The folder may be in order, and the user of this command the wrong one. */
function remedyOfUser(path: string): string {
  return (
    "run doctor as the user of the service; if this is its user: " +
    `install -d -m 700 ${path}, and chown -R it to this user, on a file system that is not read-only`
  );
}

interface Disk {
  readonly path: string;
  readonly freeBytes: number | null;
  readonly syncMs: number | null;
}

function disk({ path, freeBytes, syncMs }: Disk): Found {
  const { ok, withLevel } = about(
    "data-disk",
    "The service writes a submission to this disk before it responds. A slow disk delays responses; a full disk stops submissions.",
  );
  const free = freeBytes === null ? "unknown" : `${Math.round(freeBytes / 2 ** 20)} MiB`;
  const sync =
    syncMs === null ? "the time of a write is unknown" : `a write takes ${syncMs.toFixed(1)} ms`;
  const finding = `${path}: ${free} free, ${sync}`;
  const isShort = freeBytes !== null && freeBytes < freeBytesLeast.warn;
  if (!isShort && (syncMs === null || syncMs <= syncMsMax)) return ok(finding);
  const level: Level = isShort && (freeBytes ?? 0) < freeBytesLeast.fail ? "fail" : "warn";
  const remedy = isShort
    ? `make room on the disk of ${path} (df -h lists all of them), or move data.directory`
    : "move data.directory to a local SSD with a write cache that survives a loss of power";
  return withLevel(level, finding, remedy);
}

function certificate(fact: ServiceFacts["certificates"][number]): Found {
  const { section } = fact;
  const { ok, fail, withLevel } = about(
    "tls-certificate",
    "Clients refuse a certificate that is expired or does not match its key.",
  );
  if (fact.leftMs === null) {
    return fail(fact.error ?? "", `correct the files of ${section}, then restart the service`);
  }
  const days = fact.leftMs / 86_400_000;
  if (days >= certificateDaysLeast) return ok(`${fact.path} is valid for ${Math.floor(days)} days`);
  const finding =
    days < 0
      ? `${fact.path} expired ${Math.floor(-days)} days ago`
      : `${fact.path} expires in ${Math.floor(days)} days`;
  const remedy = `renew the certificate and replace both files of ${section}; the service picks them up within two seconds`;
  // Clients over QUIC verify no dates.
  const isFatal = days < 0 && section !== "quic.tls";
  return withLevel(isFatal ? "fail" : "warn", finding, remedy);
}

function isPublic(address: string): boolean {
  const name = classifyAddress(parseEndpoint(address, { allowPortZero: true }).bytes);
  return name === "global" || name === "unspecified" || name === "documentation";
}

function isExposed({ address, takesApiKeys, hasTls }: TcpListener): boolean {
  return takesApiKeys && !hasTls && isPublic(address);
}

/** Names each key once. A derived address follows http.listen. */
function exposureRemedy(exposed: readonly TcpListener[]): string {
  const all = exposed.map(({ key, derivation }) =>
    derivation === undefined ? key : "http.listen",
  );
  const keys = [...new Set(all)].filter((key) => key.startsWith("http."));
  const ofHttp =
    `move ${keys.join(" and ")} to 127.0.0.1, ` +
    "and set http.tls with a certificate and its key for other machines";
  const ofStreams = "set streams.tls with a certificate and its key";
  return [
    ...(keys.length > 0 ? [ofHttp] : []),
    ...(all.includes("streams.listen") ? [ofStreams] : []),
  ].join("; ");
}

function exposure(config: Config): Found[] {
  if (!config.http) return [];
  const { ok, warn } = about("exposure", "Without TLS, API keys can be read in transit.");
  const exposed = tcpListenersOf(config).filter(isExposed);
  if (exposed.length === 0)
    return [ok("no listener that takes API keys is public and without TLS")];
  const addresses = exposed.map(({ address }) => address).join(", ");
  const verbs = exposed.length === 1 ? "is public and has" : "are public and have";
  return [warn(`${addresses} ${verbs} no TLS`, exposureRemedy(exposed))];
}

function leadersEnd({ lastLeaderSlot, node: nodeFacts }: ServiceFacts): Found[] {
  const slot = nodeFacts?.slot ?? null;
  if (lastLeaderSlot === null || slot === null) return [];
  const { ok, withLevel } = about(
    "leaders-end",
    "Shreds of slots without a leader in the schedule are dropped.",
  );
  const left = lastLeaderSlot - slot;
  if (left >= leaderSlotsLeast) return [ok(`the leader schedule covers ${left} more slots`)];
  const finding =
    left < 0n
      ? `the leader schedule ended ${-left} slots ago`
      : `the leader schedule covers ${left} more slots`;
  return [
    withLevel(
      left < 0n ? "fail" : "warn",
      finding,
      "write a newer schedule into relay.leaders.file and reload, or remove the key to use the schedule of solana.rpc",
    ),
  ];
}

function postgres({ postgres: servers }: ServiceFacts): Found[] {
  const { ok, warn, fail, withLevel } = about(
    "postgres",
    "It stores accounts, tips and tiers. The service does not start without a writable server.",
  );
  const takesChanges = servers.some(({ error, isReadOnly }) => error === null && !isReadOnly);
  return servers.map(({ name, error, isReadOnly, connectMs, settings }) => {
    if (error !== null) {
      const level = takesChanges ? "warn" : "fail";
      const remedy =
        "check the server's log, pg_hba.conf and the firewall; docs/postgres.md lists the role's privileges";
      return withLevel(level, `${name}: ${error}`, remedy);
    }
    if (isReadOnly && !takesChanges) {
      const remedy = "promote it (SELECT pg_promote()), or add the primary to data.postgres";
      return fail(`${name}: a replica, and no server is writable`, remedy);
    }
    if (isReadOnly) return ok(`${name}: a replica`);
    const text = `${name}: ${settings["server_version"] ?? "unknown"}, connected in ${connectMs.toFixed(0)} ms`;
    const off = ["fsync", "full_page_writes", "synchronous_commit"].filter(
      (key) => settings[key] === "off",
    );
    if (off.length === 0) return ok(text);
    const remedy = `${off.map((key) => `ALTER SYSTEM SET ${key} = on;`).join(" ")} SELECT pg_reload_conf();`;
    return warn(`${text}, but ${off.join(", ")} is off`, remedy);
  });
}

function node({ relay }: Config, { node: nodeFacts }: ServiceFacts): Found[] {
  if (!nodeFacts) return [];
  const { fail, withLevel } = about(
    "solana-node",
    "It provides leaders, outcomes and blockhashes, and receives forwarded read methods.",
  );
  const { host, error, answerMs, shredVersion } = nodeFacts;
  if (error !== null) {
    const remedy = `curl -s -H 'content-type: application/json' -d '{"jsonrpc":"2.0","id":1,"method":"getHealth"}' the URL of solana.rpc`;
    return [fail(`${host}: ${error}`, remedy)];
  }
  const text = `${host}: slot ${nodeFacts.slot}, response in ${answerMs.toFixed(0)} ms`;
  const isSlow = answerMs > answerMsMax;
  const remedy = isSlow ? "use a node in the same region" : null;
  const answer = withLevel(isSlow ? "warn" : "ok", text, remedy);
  return shredVersion === null ? [answer] : [answer, versionOf(relay.shredVersion, shredVersion)];
}

function versionOf(configured: number, ofCluster: number): Found {
  const { ok, fail } = about(
    "shred-version",
    "Shreds of another version are dropped; it changes with hard forks.",
  );
  if (configured === ofCluster) return ok(`${configured}, the same as most nodes of the cluster`);
  return fail(
    `relay.shredVersion is ${configured}, most nodes of the cluster have ${ofCluster}`,
    `set relay.shredVersion: ${ofCluster}, or set solana.rpc to a node of the right cluster`,
  );
}

/** Without these addresses, the service starts and sells no tier. */
function shredTips({ http, tips, regions }: Config): Found[] {
  if (!http) return [];
  const { ok, warn } = about(
    "shred-tips",
    "Accounts buy tiers with tips to these addresses. Without one, they get no tier and have no destinations.",
  );
  const count = new Set(
    [tips.shredAddresses, ...regions.map((one) => one.shredTipAddresses)].flat(),
  ).size;
  if (count > 0) return [ok(`${counted(count, "address", "addresses")} for tips for shreds`)];
  const remedy =
    "set tips.shredAddresses to your own public keys, unless this service sells no shreds";
  return [warn("tips.shredAddresses is empty: this service sells no shreds", remedy)];
}

function route({ name, target, error, connectMs }: ServiceFacts["routes"][number]): Found {
  const { ok, warn } = about(
    "route",
    "Submissions are sent over this route. doctor only opened a connection and sent nothing.",
  );
  if (error === null) return ok(`${name}: ${target} connected in ${connectMs.toFixed(0)} ms`);
  const remedy = `check routes[].url of ${name}, and the firewall: curl -v ${target}`;
  return warn(`${name}: ${target}: ${error}`, remedy);
}
