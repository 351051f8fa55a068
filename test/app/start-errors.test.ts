// Errors of the startup as operators see them: the key, the value, and the remedy. Real services and ports.

import { createSocket } from "node:dgram";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { quicheProblem } from "../../src/core/quic/quiche.ts";
import { closing } from "../support/closing.ts";
import { freePort, freePortPair, freeUdpPort } from "../support/network/free-ports.ts";
import { Shredway, shredwayHere } from "../support/processes/shredway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tips = 'tips: { addresses: ["11111111111111111111111111111112"] }\n';
const relay = 'listen: "127.0.0.1:0", shredVersion: 1, authentication: off';

function fileWith(text: string): string {
  const file = join(temporaryFolder(), "shredway.yaml");
  writeFileSync(file, text);
  return file;
}

async function refusalOf(text: string): Promise<string> {
  const { code, stderr } = await Shredway.run("start", "--config", fileWith(text)).end();
  expect(code).toBe(1);
  return stderr;
}

async function usedTcpPort(wanted = 0): Promise<number> {
  const server = createServer();
  server.listen(wanted, "127.0.0.1");
  await once(server, "listening");
  closing({ close: () => void server.close() });
  const address = server.address();
  return typeof address === "object" ? (address?.port ?? 0) : 0;
}

describe("shredway start", () => {
  it("ends after an error that appears when the gateway is open", async () => {
    const more = 'http: { listen: "127.0.0.1:0", webSocketListen: [] }\n';
    const missing = "{ certificate: missing.pem, key: missing.key }";
    for (const text of [
      `${tips}streams: { listen: "127.0.0.1:0", tls: ${missing} }\n`,
      `${tips}shredstream: { listen: "127.0.0.1:0", tls: ${missing} }\n`,
    ]) {
      const deshred = "deshred: true";
      expect(await refusalOf(`relay: { ${relay}, ${deshred} }\n${more}${text}`)).toContain(
        "missing.",
      );
    }
  });

  it("names http.listen for a TCP port in use, and how to find its user", async () => {
    const port = await usedTcpPort();
    const http = `http: { listen: "127.0.0.1:${port}", webSocketListen: [] }\n`;
    expect(await refusalOf(`relay: { ${relay} }\n${http}${tips}`)).toContain(
      `http.listen: cannot listen on 127.0.0.1:${port}: address already in use; stop the program that ` +
        `uses it (ss -tlpn 'sport = :${port}' shows it), or change http.listen`,
    );
    const operations = `operations: { listen: "127.0.0.1:${port}" }\n`;
    expect(await refusalOf(`relay: { ${relay} }\n${operations}`)).toContain(
      "or change operations.listen",
    );
  });

  it("names the key of a gRPC listener whose port is in use, or whose address is missing", async () => {
    const port = await usedTcpPort();
    const inUse = (key: string) =>
      `${key}: cannot listen on 127.0.0.1:${port}: address already in use; stop the program that ` +
      `uses it (ss -tlpn 'sport = :${port}' shows it), or change ${key}`;
    const subscribers = `shredstream: { listen: "127.0.0.1:${port}" }\n`;
    expect(await refusalOf(`relay: { ${relay} }\n${subscribers}`)).toContain(
      inUse("shredstream.listen"),
    );
    const http = 'http: { listen: "127.0.0.1:0", webSocketListen: [] }\n';
    const start = `relay: { ${relay} }\n${http}${tips}`;
    expect(await refusalOf(`${start}streams: { listen: "127.0.0.1:${port}" }\n`)).toContain(
      inUse("streams.listen"),
    );
    expect(await refusalOf(`${start}streams: { listen: "192.0.2.1:1" }\n`)).toContain(
      "streams.listen: cannot listen on 192.0.2.1:1: address not available; correct streams.listen",
    );
  });

  it("names the key that a derived port for WebSockets depends on", async () => {
    const first = await freePortPair();
    const port = await usedTcpPort(first + 1);
    const http = `http: { listen: "127.0.0.1:${first}" }\n`;
    expect(await refusalOf(`relay: { ${relay} }\n${http}${tips}`)).toContain(
      `http.webSocketListen (default: the port after http.listen): cannot listen on 127.0.0.1:${port}: `,
    );
  });

  it.skipIf(quicheProblem() !== null)("names quic.listen for a UDP port in use", async () => {
    const socket = createSocket("udp4");
    closing({ close: () => void socket.close() });
    socket.bind(0, "127.0.0.1");
    await once(socket, "listening");
    const { port } = socket.address();
    const http = 'http: { listen: "127.0.0.1:0", webSocketListen: [] }';
    const quic = `quic: { listen: "127.0.0.1:0", protectedListen: "127.0.0.1:${port}" }`;
    expect(await refusalOf(`relay: { ${relay} }\n${http}\n${quic}\n${tips}`)).toMatch(
      new RegExp(
        `quic.protectedListen: cannot listen on 127.0.0.1:${port} \\(UDP\\): .*in use; stop the ` +
          `program that uses it \\(ss -ulpn 'sport = :${port}' shows it\\), or change quic.protectedListen`,
      ),
    );
  });

  it("names relay.cpus for a missing CPU, and the CPUs that exist", async () => {
    const known = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync("/proc/self/status", "utf8"));
    expect(await refusalOf(`relay: { ${relay}, cpus: [1023] }\n`)).toContain(
      `relay.cpus[0]: cannot pin a worker to CPU 1023: Invalid argument; expected CPUs of this process: ${known?.[1]}`,
    );
  });

  it("names relay.send.source for an address of another machine, as doctor does", async () => {
    const text = `relay: { ${relay}, send: { source: 192.0.2.1 } }\n`;
    expect(await refusalOf(text)).toContain(
      "relay.send.source: bind 192.0.2.1:0: Cannot assign requested address; no interface of this machine",
    );
    const { code, stdout } = await shredwayHere("doctor", "--config", fileWith(text));
    expect(stdout).toContain("192.0.2.1:0: no interface of this machine has the address 192.0.2.1");
    expect(stdout).toContain("set relay.send.source to an address of this machine: ");
    expect(code).toBe(1);
  });

  it("names data.directory for a file in its place", async () => {
    const text = `relay: { ${relay} }\nhttp: { listen: "127.0.0.1:0", webSocketListen: [] }\n${tips}`;
    const error = await refusalOf(`${text}data: { directory: shredway.yaml }\n`);
    expect(error).toMatch(/data.directory: \S+shredway.yaml: not a folder; expected a folder/);
  });

  it("explains the response of a node in place of leaders.json", async () => {
    const slots = { "11111111111111111111111111111112": [0, 1, 2, 3] };
    for (const content of [slots, { jsonrpc: "2.0", id: 1, result: slots }]) {
      const file = fileWith(
        'relay: { listen: "127.0.0.1:0", shredVersion: 1, leaders: { file: leaders.json } }\n',
      );
      writeFileSync(join(file, "..", "leaders.json"), JSON.stringify(content));
      const { stderr } = await Shredway.run("start", "--config", file).end();
      expect(stderr).toContain("this is the response to getLeaderSchedule, which does not name");
      expect(stderr).toContain("absoluteSlot - slotIndex of getEpochInfo as firstSlot");
    }
  });

  it("refuses an unknown level of the log", async () => {
    const { code, stderr } = await shredwayHere("start", "--config", "x", "--log-level", "loud");
    expect(stderr).toContain(
      '--log-level: invalid value "loud"; expected one of trace, debug, info',
    );
    expect(code).toBe(2);
  });
});

describe("a running service", () => {
  it("is recognised by doctor, names a second user of its port, and reports what is degraded", async () => {
    const [udp, tcp] = [await freeUdpPort(), await freePort()];
    const text = `solana: { rpc: "http://127.0.0.1:1/" }
relay: { listen: "127.0.0.1:${udp}", shredVersion: 1 }
http: { listen: "127.0.0.1:${tcp}", webSocketListen: [] }
${tips}`;
    const file = fileWith(text);
    const service = Shredway.run("start", "--config", file);
    closing({ close: () => service.kill() });
    await service.printed(/^ready .* degraded=leader_schedule$/m);
    await service.printed(
      /degraded: leader_schedule: no leader schedule yet: .*returns 503/,
      "stderr",
    );

    const findings = async (config: string) => {
      const { stdout } = await shredwayHere("doctor", "--config", config, "--json");
      const { findings: all }: { findings: { check: string; level: string; finding: string }[] } =
        JSON.parse(stdout);
      return all.filter(({ check }) => check === "listen" || check === "shred-tips");
    };
    expect(await findings(file)).toEqual([
      expect.objectContaining({
        level: "ok",
        finding: expect.stringMatching(
          /in use by the service of this configuration \(process \d+\)$/,
        ),
      }),
      expect.objectContaining({
        level: "ok",
        finding: expect.stringContaining(`127.0.0.1:${tcp} is in use by the service`),
      }),
      expect.objectContaining({ check: "shred-tips", level: "warn" }),
    ]);
    const other = fileWith(text);
    expect((await findings(other)).slice(0, 2)).toEqual([
      expect.objectContaining({
        level: "fail",
        finding: expect.stringMatching(/in use.* \(process \d+, \S+\)$/),
      }),
      expect.objectContaining({
        level: "fail",
        finding: expect.stringMatching(/in use.* \(process \d+, \S+\)$/),
      }),
    ]);
    const { stderr } = await Shredway.run("start", "--config", other).end();
    expect(stderr).toContain(
      `relay.listen: bind 127.0.0.1:${udp}: Address already in use; stop the program that uses it ` +
        `(ss -ulpn 'sport = :${udp}' shows it), or change relay.listen`,
    );

    // A file with an error keeps the tables, and signals that come together are all handled.
    writeFileSync(file, `${text}region: nowhere\n`);
    service.signal("SIGHUP");
    await service.printed(/reload failed, the previous configuration stays in force/, "stderr");
    const source = "sources: [{ name: a, address: 10.0.0.1, tier: tier-1 }]";
    writeFileSync(file, text.replace("shredVersion: 1 }", `shredVersion: 1, ${source} }`));
    service.signal("SIGHUP");
    service.signal("SIGHUP");
    service.signal("SIGHUP");
    await service.printed(/"sources":1,.*reloaded sources, destinations and leaders/, "stderr");
    service.signal("SIGTERM");
    expect((await service.end()).code).toBe(0);
  });
});

it("names a part that cannot work at the start, in readiness and in doctor, until a reload completes it", async () => {
  const port = await freePort();
  const udp = await freeUdpPort();
  const text = (tier: string) => `operations: { listen: "127.0.0.1:${port}" }
relay:
  listen: "127.0.0.1:${udp}"
  shredVersion: 1
  authentication: off
  sources: [{ name: a, address: 127.0.0.1, tier: ${tier} }]
  destinations: [{ name: own, address: "192.0.2.1:9", tier: tier-1 }]
  allowPrivateDestinations: true
`;
  const file = fileWith(text("tier-2"));
  const service = Shredway.run("start", "--config", file);
  closing({ close: () => service.kill() });
  const warning = "so tier-1 gets no shreds (destination own)";
  await service.printed(/so tier-1 gets no shreds \(destination own\)/, "stderr");
  await service.printed(/^ready /m);
  const readiness = async () => (await fetch(`http://127.0.0.1:${port}/health/ready`)).text();
  expect(await readiness()).toContain(warning);
  const doctor = async () => (await shredwayHere("doctor", "--config", file)).stdout;
  expect(await doctor()).toContain(warning);

  writeFileSync(file, text("tier-1"));
  service.signal("SIGHUP");
  await service.printed(/reloaded sources, destinations and leaders/, "stderr");
  expect(await readiness()).not.toContain(warning);
  expect(await doctor()).not.toContain(warning);
});
