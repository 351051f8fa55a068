// The checks of the gateway's dependencies, with facts in both states. The facts are read from real
// files, ports, a stand-in node and a PostgreSQL.

import { once } from "node:events";
import { chmodSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { describe, expect, it, vi } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { loadConfig, parseConfig } from "../../../src/core/configuration/configuration.ts";
import { measures } from "../../../src/platform/doctor/measures.ts";
import { checkService } from "../../../src/platform/doctor/service-checks.ts";
import { readServiceFacts, type ServiceFacts } from "../../../src/platform/doctor/service-facts.ts";
import { closing } from "../../support/closing.ts";
import { freePort, freePortPair } from "../../support/network/free-ports.ts";
import { PostgresServer, postgresPrograms } from "../../support/postgres/postgres.ts";
import { selfSignedCertificate, selfSignedKey } from "../../support/quic/self-signed.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const tip = "2gPG8fL2EV11ziLGpr1rDSrhhhGj2TgNNr9HVk8MyzbU";
const least = `relay: { listen: "127.0.0.1:0", shredVersion: 9, authentication: off }\ntips: { addresses: [${tip}] }\n`;
const config = (more = "") => parseConfig(least + more, "/etc/shredway.yaml");
const nothing: ServiceFacts = {
  configHoldsSecrets: false,
  configMode: 0o640,
  secretFiles: [],
  keyFiles: [],
  folder: null,
  tcpPorts: [],
  certificates: [],
  postgres: [],
  node: null,
  routes: [],
  lastLeaderSlot: null,
};
type TlsSection = ServiceFacts["certificates"][number]["section"];
const certificate = (days: number, section: TlsSection = "http.tls") => [
  { section, path: "/c", leftMs: days * 86_400_000, error: null },
];
const free = { address: "127.0.0.1:8780", error: null };
const folder = {
  path: "/d",
  mode: 0o700,
  isOwn: true,
  isWritable: true,
  freeBytes: 2 ** 36,
  syncMs: 1,
};
const node = { host: "rpc:1", error: null, answerMs: 20, slot: 1000n, shredVersion: 9 };
const primary = {
  name: "a:5432",
  error: null,
  isReadOnly: false,
  connectMs: 2,
  settings: { server_version: "15.1", fsync: "on", synchronous_commit: "on" },
};
const replica = { ...primary, name: "b:5432", isReadOnly: true, settings: {} };
const away = { ...primary, name: "c:5432", error: "connect ECONNREFUSED", settings: {} };
const route = { name: "r", target: "http://r:1", error: null, connectMs: 3 };

describe("checkService", () => {
  it("reports nothing for a relay without a gateway", () => {
    expect(checkService(config(), "/etc/shredway.yaml", nothing)).toEqual([]);
  });

  it.each([
    [[tip], "1 address for tips for shreds"],
    [[tip, "11111111111111111111111111111112"], "2 addresses for tips for shreds"],
  ])("counts the addresses for tips for shreds: %j", (addresses, finding) => {
    const text = least.replace(
      "addresses:",
      `shredAddresses: ${JSON.stringify(addresses)}, addresses:`,
    );
    const read = parseConfig(`${text}http: { listen: "127.0.0.1:0", webSocketListen: [] }`, "/f");
    const found = checkService(read, "/f", nothing).find(({ check }) => check === "shred-tips");
    expect(found?.finding).toBe(finding);
  });

  it.each<[string, Partial<ServiceFacts>, string, string | null]>([
    [
      "secret-mode",
      { configHoldsSecrets: true, configMode: 0o644 },
      "warn",
      "chmod o= /etc/s.yaml",
    ],
    ["secret-mode", { configHoldsSecrets: true }, "ok", null],
    ["secret-mode", { secretFiles: [{ path: "/s", mode: 0o644 }] }, "fail", "chmod o= /s"],
    ["secret-mode", { secretFiles: [{ path: "/s", mode: 0o640 }] }, "ok", null],
    ["secret-mode", { secretFiles: [{ path: "/s", mode: null }] }, "fail", "ls -l /s"],
    ["secret-mode", { keyFiles: [{ path: "/k", mode: 0o640 }] }, "fail", "chmod go= /k"],
    ["secret-mode", { keyFiles: [{ path: "/k", mode: 0o600 }] }, "ok", null],
    ["data-folder", { folder }, "ok", null],
    ["data-folder", { folder: { ...folder, mode: 0o755 } }, "warn", "chmod -R go= /d"],
    ["data-folder", { folder: { ...folder, mode: null } }, "ok", null],
    ["data-folder", { folder: { ...folder, isWritable: false } }, "warn", "user of the service"],
    [
      "data-folder",
      { folder: { ...folder, mode: null, isWritable: false } },
      "warn",
      "user of the service",
    ],
    ["data-disk", { folder }, "ok", null],
    ["data-disk", { folder: { ...folder, syncMs: null } }, "ok", null],
    ["data-disk", { folder: { ...folder, syncMs: 35 } }, "warn", "SSD"],
    ["data-disk", { folder: { ...folder, freeBytes: 2 ** 29 } }, "warn", "df -h lists"],
    ["data-disk", { folder: { ...folder, freeBytes: 2 ** 20 } }, "fail", "df -h lists"],
    ["data-disk", { folder: { ...folder, mode: null, freeBytes: 2 ** 20 } }, "fail", "df -h lists"],
    ["listen", { tcpPorts: [{ ...free, key: "http.listen" }] }, "ok", null],
    [
      "listen",
      { tcpPorts: [{ address: "[::]:10010", error: "in use", key: "shredstream.listen" }] },
      "fail",
      "ss -tlpn 'sport = :10010' (shows the process that uses it), or change shredstream.listen",
    ],
    [
      "listen",
      { tcpPorts: [{ address: "[::]:1", error: "in use", key: "http.split[0].listen" }] },
      "fail",
      "sport = :1' (shows the process that uses it), or change http.split[0].listen",
    ],
    ["tls-certificate", { certificates: certificate(60) }, "ok", null],
    ["tls-certificate", { certificates: certificate(20) }, "warn", "renew the certificate"],
    ["tls-certificate", { certificates: certificate(-1) }, "fail", "renew the certificate"],
    [
      "tls-certificate",
      { certificates: certificate(-1, "quic.tls") },
      "warn",
      "both files of quic.tls",
    ],
    [
      "tls-certificate",
      { certificates: certificate(-1, "streams.tls") },
      "fail",
      "both files of streams.tls",
    ],
    [
      "tls-certificate",
      { certificates: certificate(-1, "shredstream.tls") },
      "fail",
      "both files of shredstream.tls",
    ],
    [
      "tls-certificate",
      {
        certificates: [
          { section: "http.tls", path: "/c", leftMs: null, error: "/c: cannot be read" },
        ],
      },
      "fail",
      "correct the files",
    ],
    ["leaders-end", { node, lastLeaderSlot: 20_000n }, "ok", null],
    ["leaders-end", { node, lastLeaderSlot: 9_999n }, "warn", "relay.leaders.file"],
    ["leaders-end", { node, lastLeaderSlot: 999n }, "fail", "relay.leaders.file"],
    ["postgres", { postgres: [primary] }, "ok", null],
    ["postgres", { postgres: [replica, primary] }, "ok", null],
    ["postgres", { postgres: [replica] }, "fail", "pg_promote"],
    ["postgres", { postgres: [away] }, "fail", "pg_hba.conf"],
    ["postgres", { postgres: [away, primary] }, "warn", "pg_hba.conf"],
    [
      "postgres",
      { postgres: [{ ...primary, settings: { fsync: "off" } }] },
      "warn",
      "ALTER SYSTEM SET fsync = on;",
    ],
    ["solana-node", { node }, "ok", null],
    ["solana-node", { node: { ...node, answerMs: 900 } }, "warn", "same region"],
    ["solana-node", { node: { ...node, error: "ECONNREFUSED", slot: null } }, "fail", "getHealth"],
    ["shred-version", { node }, "ok", null],
    ["shred-version", { node: { ...node, shredVersion: 10 } }, "fail", "relay.shredVersion: 10"],
    ["route", { routes: [route] }, "ok", null],
    ["route", { routes: [{ ...route, error: "ECONNREFUSED" }] }, "warn", "curl -v http://r:1"],
  ])("%s %o is %s", (check, facts, level, remedy) => {
    const all = checkService(config(), "/etc/s.yaml", { ...nothing, ...facts });
    const finding = all.find((one) => one.check === check);
    expect(finding?.level).toBe(level);
    if (remedy === null) expect(finding?.remedy).toBeNull();
    else expect(finding?.remedy).toContain(remedy);
    expect(finding?.measure).toBe(level === "ok" ? null : measures[check]);
  });

  it.each([
    ["127.0.0.1:8780", "ok"],
    ["10.0.0.1:8780", "ok"],
    ["0.0.0.0:8780", "warn"],
    ["8.8.8.8:8780", "warn"],
  ])("a gateway on %s is %s", (listen, level) => {
    const [finding] = checkService(config(`http: { listen: "${listen}" }`), "/f", nothing);
    expect(finding).toMatchObject({ check: "exposure", level });
  });

  const own = 'listen: "127.0.0.1:8780"';
  const files = "{ certificate: c.pem, key: k.pem }";
  const forHttp = (keys: string) =>
    `move ${keys} to 127.0.0.1, and set http.tls with a certificate and its key for other machines`;
  it.each([
    [
      'http: { listen: "0.0.0.0:8780" }',
      "0.0.0.0:8780, 0.0.0.0:8781 are public and have no TLS",
      forHttp("http.listen"),
    ],
    [
      `http: { ${own}, webSocketListen: ["8.8.8.8:9"] }`,
      "8.8.8.8:9 is public and has no TLS",
      forHttp("http.webSocketListen"),
    ],
    [
      `http: { ${own}, split: [{ listen: "127.0.0.1:1", serves: [portal] }, { listen: "[::]:2", serves: [portal] }] }`,
      "[::]:2 is public and has no TLS",
      forHttp("http.split[1].listen"),
    ],
    [
      `http: { ${own} }\nstreams: { listen: "0.0.0.0:10000" }`,
      "0.0.0.0:10000 is public and has no TLS",
      "set streams.tls with a certificate and its key",
    ],
    [
      `http: { listen: "8.8.8.8:443", split: [{ listen: "[::]:2", serves: [gateway] }] }\nstreams: {}`,
      "8.8.8.8:443, [::]:2, 0.0.0.0:10000 are public and have no TLS",
      `${forHttp("http.listen and http.split[0].listen")}; set streams.tls with a certificate and its key`,
    ],
  ])("warns about API keys in clear: %s", (text, finding, remedy) => {
    const all = checkService(config(text), "/f", nothing);
    expect(all.filter(({ check }) => check === "exposure")).toMatchObject([
      { level: "warn", finding, remedy },
    ]);
  });

  it.each([
    `http: { ${own}, tls: ${files.replace(" }", ', listen: "0.0.0.0:443" }')} }`,
    `http: { ${own} }\nstreams: { tls: ${files} }\nshredstream: {}\noperations: { listen: "[::]:9" }`,
    `http: { ${own}, split: [{ listen: "0.0.0.0:80", serves: [tips, tracker] }] }`,
  ])("reports no exposure with TLS, or where no API keys arrive: %s", (text) => {
    const all = checkService(config(text), "/f", nothing);
    expect(all.filter(({ check }) => check === "exposure")).toMatchObject([{ level: "ok" }]);
  });
});

/** A node with the answers that doctor needs. */
async function nodeStandIn(): Promise<string> {
  const epoch = { epoch: 1, absoluteSlot: 500, slotIndex: 68, slotsInEpoch: 432, blockHeight: 5 };
  const nodes = [9, 9, 10].map((shredVersion) => ({ pubkey: tip, tpuQuic: null, shredVersion }));
  const server = createServer((request, answer) => {
    let body = "";
    request.on("data", (chunk: Buffer) => {
      body += chunk.toString();
    });
    request.on("end", () => {
      const { id, method }: { id: unknown; method: string } = JSON.parse(body);
      const result = method === "getEpochInfo" ? epoch : nodes;
      answer.setHeader("content-type", "application/json");
      answer.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closing({ close: () => void server.close() });
  const address = server.address();
  return typeof address === "object" ? `http://127.0.0.1:${address?.port}/hidden` : "";
}

/** A port of loopback in use. */
async function usePort(port: number): Promise<string> {
  const server = createServer();
  closing({ close: () => void server.close() });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  return `127.0.0.1:${port}`;
}

/** The facts about a configuration in a file of its own. */
async function factsOf(more: string, home = temporaryFolder()): Promise<ServiceFacts> {
  const file = join(home, "shredway.yaml");
  writeFileSync(file, least + more);
  return readServiceFacts(file, loadConfig(file), systemClock);
}

const noWebSocket = 'http: { listen: "127.0.0.1:0", webSocketListen: [] ';

describe("readServiceFacts", () => {
  it.each<[string, (address: string) => string]>([
    ["http.listen", (at) => `http: { listen: "${at}", webSocketListen: [] }`],
    [
      "http.split[0].listen",
      (at) => `${noWebSocket}, split: [{ listen: "${at}", serves: [tips] }] }`,
    ],
    ["operations.listen", (at) => `operations: { listen: "${at}" }`],
    ["streams.listen", (at) => `${noWebSocket} }\nstreams: { listen: "${at}" }`],
    ["shredstream.listen", (at) => `shredstream: { listen: "${at}" }`],
  ])("reports that another process uses the port of %s", async (key, textOf) => {
    const address = await usePort(await freePort());
    const { tcpPorts } = await factsOf(textOf(address));
    expect(tcpPorts.filter(({ error }) => error !== null)).toEqual([
      expect.objectContaining({ key, address, error: expect.stringContaining("EADDRINUSE") }),
    ]);
  });

  it.each([
    ["http.listen", "192.0.2.199:0", `${noWebSocket.replace("127.0.0.1:0", "192.0.2.199:0")} }`],
    ["operations.listen", "192.0.2.199:1", 'operations: { listen: "192.0.2.199:1" }'],
    ["shredstream.listen", "192.0.2.199:1", 'shredstream: { listen: "192.0.2.199:1" }'],
  ])("names the addresses of this machine if %s is not one of them", async (key, at, text) => {
    const { tcpPorts } = await factsOf(text);
    const all = checkService(config(), "/f", { ...nothing, tcpPorts });
    const found = all.find(({ level }) => level === "fail");
    expect(found).toMatchObject({
      check: "listen",
      finding: `${at}: no interface of this machine has the address 192.0.2.199`,
      remedy: expect.stringMatching(
        /^set \S+ to an address of this machine: (\S+, )*127\.0\.0\.1(, \S+)* \(ip -brief address lists them\)$/,
      ),
    });
    expect(found?.remedy).toContain(`set ${key} to`);
    expect(found?.remedy).not.toContain("::1");
  });

  it("reports that another process uses the derived port for WebSockets", async () => {
    const first = await freePortPair();
    const address = await usePort(first + 1);
    const { tcpPorts } = await factsOf(`http: { listen: "127.0.0.1:${first}" }`);
    const key = "http.webSocketListen (default: the port after http.listen)";
    expect(tcpPorts).toEqual([
      { key: "http.listen", address: `127.0.0.1:${first}`, error: null },
      expect.objectContaining({ key, address, error: expect.stringContaining("EADDRINUSE") }),
    ]);
    const all = checkService(config(), "/f", { ...nothing, tcpPorts });
    expect(all.map(({ level, remedy }) => [level, remedy])).toEqual([
      ["ok", null],
      ["fail", expect.stringContaining(`or change ${key}`)],
    ]);
  });

  it("reads the certificates and the modes of the keys of every section", async () => {
    const home = temporaryFolder();
    writeFileSync(join(home, "c.pem"), selfSignedCertificate);
    writeFileSync(join(home, "k.pem"), selfSignedKey);
    writeFileSync(join(home, "k2.pem"), "no key");
    chmodSync(join(home, "k.pem"), 0o644);
    chmodSync(join(home, "k2.pem"), 0o600);
    const tls = "tls: { certificate: c.pem, key: k.pem";
    const sections = [
      `${noWebSocket}, ${tls}, listen: "127.0.0.1:0" } }`,
      `streams: { listen: "127.0.0.1:0", ${tls} } }`,
      'shredstream: { listen: "127.0.0.1:0", tls: { certificate: c.pem, key: k2.pem } }',
    ];
    const facts = await factsOf(sections.join("\n"), home);
    expect(facts.certificates).toEqual([
      expect.objectContaining({ section: "http.tls", error: null }),
      expect.objectContaining({ section: "streams.tls", error: null }),
      expect.objectContaining({
        section: "shredstream.tls",
        leftMs: null,
        error: expect.stringContaining("k2.pem: expected a private key"),
      }),
    ]);
    expect(facts.secretFiles).toEqual([
      { path: join(home, "k.pem"), mode: 0o644 },
      { path: join(home, "k2.pem"), mode: 0o600 },
    ]);
  });

  it.each([
    [false, `solana: { rpc: "\${file:rpc}" }`],
    [true, `solana: { rpc: "\${file:rpc}" }\ntracker: { url: "http://127.0.0.1:9/?key=hidden" }`],
    [false, `solana: { rpc: "\${env:SHREDWAY_TEST_RPC}" }`],
    [true, 'solana: { rpc: "http://127.0.0.1:9/hidden" }'],
  ])("finds secrets in the file itself: %s for %s", async (expected, text) => {
    vi.stubEnv("SHREDWAY_TEST_RPC", "http://127.0.0.1:9/hidden");
    closing({ close: () => void vi.unstubAllEnvs() });
    const home = temporaryFolder();
    writeFileSync(join(home, "rpc"), "http://127.0.0.1:9/hidden");
    expect((await factsOf(text, home)).configHoldsSecrets).toBe(expected);
  });

  it("reads files, ports, node and partners, and leaves no file or socket behind", async () => {
    const home = temporaryFolder();
    mkdirSync(join(home, "data"), { mode: 0o700 });
    writeFileSync(join(home, "rpc"), await nodeStandIn(), { mode: 0o600 });
    chmodSync(join(home, "rpc"), 0o644);
    const file = join(home, "shredway.yaml");
    const more = [
      `solana: { rpc: "\${file:rpc}" }`,
      "data: { directory: data }",
      'http: { listen: "127.0.0.1:0", webSocketListen: [] }',
      'routes: [{ name: gone, kind: scheduler, url: "http://127.0.0.1:9/" }]',
    ];
    writeFileSync(file, least + more.join("\n"));
    const read = loadConfig(file);
    const facts = await readServiceFacts(file, read, systemClock);
    expect(facts).toMatchObject({
      configHoldsSecrets: false,
      secretFiles: [{ path: join(home, "rpc"), mode: 0o644 }],
      folder: { path: join(home, "data"), mode: 0o700, isOwn: true, isWritable: true },
      tcpPorts: [{ address: "127.0.0.1:0", error: null, key: "http.listen" }],
      node: { error: null, slot: 500n, shredVersion: 9 },
      routes: [{ name: "gone", target: "http://127.0.0.1:9" }],
    });
    expect(facts.folder?.freeBytes).toBeGreaterThan(0);
    expect(facts.folder?.syncMs).toBeGreaterThan(0);
    expect(facts.routes[0]?.error).toContain("ECONNREFUSED");
    expect(readdirSync(join(home, "data"))).toEqual([]);
    const all = checkService(read, file, facts);
    expect(JSON.stringify(all)).not.toContain("hidden");
    // The answer time of the stand-in depends on this machine.
    const wrong = all
      .filter(({ check, level }) => level !== "ok" && check !== "solana-node")
      .map(({ check }) => check);
    expect(wrong).toEqual(["secret-mode", "shred-tips", "route"]);
  });

  it.each([
    ["new/data", true],
    ["file/data", false],
    ["file", false],
  ])("knows whether the service can use %s as its data folder", async (directory, isWritable) => {
    const home = temporaryFolder();
    writeFileSync(join(home, "file"), "");
    const more = `http: { listen: "127.0.0.1:0", webSocketListen: [] }\ndata: { directory: ${directory} }`;
    const { folder: fact } = await factsOf(more, home);
    expect(fact).toMatchObject({ path: join(home, directory), isWritable });
    if (isWritable) expect(fact?.freeBytes).toBeGreaterThan(0); // of the nearest folder
  });

  it("names unreachable services", async () => {
    const home = temporaryFolder();
    const file = join(home, "shredway.yaml");
    const closed = await freePort();
    const more = [
      `solana: { rpc: "http://127.0.0.1:${closed}/hidden" }`,
      'http: { listen: "127.0.0.1:0", webSocketListen: [] }',
      'data: { postgres: "postgres://u:hidden@127.0.0.1:9/d" }',
    ];
    writeFileSync(file, least + more.join("\n"));
    const read = loadConfig(file);
    const facts = await readServiceFacts(file, read, systemClock);
    expect(facts.configHoldsSecrets).toBe(true);
    expect(facts.postgres[0]?.error).toContain("ECONNREFUSED");
    expect(facts.node?.error).toContain("ECONNREFUSED");
    expect(JSON.stringify(checkService(read, file, facts))).not.toContain("hidden");
  });

  it.skipIf(postgresPrograms === null)("reads the settings of PostgreSQL", async () => {
    const server = await PostgresServer.start();
    closing({ close: () => server.remove() });
    const file = join(temporaryFolder(), "shredway.yaml");
    const http = 'http: { listen: "127.0.0.1:0", webSocketListen: [] }';
    writeFileSync(file, `${least}${http}\ndata: { postgres: "${server.url()}" }`);
    const read = loadConfig(file);
    const { postgres } = await readServiceFacts(file, read, systemClock);
    expect(postgres[0]).toMatchObject({ error: null, isReadOnly: false });
    expect(postgres[0]?.settings["server_version"]).toMatch(/^\d+/);
    expect(postgres[0]?.settings["fsync"]).toBe("off"); // the test's has none
  });
});
