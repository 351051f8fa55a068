// The commands as child processes over loopback: replay into listen, the service with its reload, the
// sandbox. All ports are dynamic.

import { execFileSync } from "node:child_process";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { formatAddress, parseEndpoint } from "../../src/core/addresses/addresses.ts";
import { pubkeyOf } from "../../src/core/primitives.ts";
import { SeededRandom } from "../../src/core/seeded-random.ts";
import { writeLpb } from "../../src/relay/captures/lpb.ts";
import { writePcap } from "../../src/relay/captures/pcap-writer.ts";
import { makeCopies } from "../../src/tools/replay/packet-copies.ts";
import { windowsOf } from "../../src/tools/replay/packet-windows.ts";
import { closing } from "../support/closing.ts";
import { freeUdpPort } from "../support/network/free-ports.ts";
import { UdpReceiver, until } from "../support/network/udp-receiver.ts";
import { type Ended, Shredway, shredway } from "../support/processes/shredway.ts";
import { ShredTraffic } from "../support/shreds/shred-traffic.ts";

const traffic = {
  seed: 11,
  leaders: 2,
  firstSlot: 7000n,
  shredVersion: 99,
  fecSetsPerSlot: 5,
  slotNs: 100_000_000,
};
const slotsGenerated = 3;
const shredsGenerated = slotsGenerated * traffic.fecSetsPerSlot * 64;

let folder = "";
let running: Shredway[] = [];
let receivers: UdpReceiver[] = [];

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "shredway-"));
});
afterEach(async () => {
  await Promise.all(running.map((program) => program.kill()));
  await Promise.all(receivers.map((open) => open.close()));
  running = [];
  receivers = [];
  rmSync(folder, { recursive: true });
});

function run(...args: string[]): Shredway {
  const program = Shredway.run(...args);
  running.push(program);
  return program;
}

async function receiver(): Promise<UdpReceiver> {
  const opened = await UdpReceiver.open();
  receivers.push(opened);
  return opened;
}

function write(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

/** Generated shreds in the order of their leaders, and the leaders. */
function makeShreds(fecSetsPerSlot = traffic.fecSetsPerSlot): {
  packets: Uint8Array[];
  leaders: string;
} {
  const maker = new ShredTraffic({ ...traffic, fecSetsPerSlot });
  const schedule = maker.schedule(6000n, 2000);
  const leaders = Object.fromEntries(schedule.keys.map((key) => [pubkeyOf(key), [] as number[]]));
  schedule.leaderBySlot.forEach((leader, slot) => {
    leaders[pubkeyOf(schedule.keys[leader] ?? new Uint8Array())]?.push(slot);
  });
  const packets = Array.from({ length: slotsGenerated }, () => maker.completeSlot().packets).flat();
  return {
    packets: packets.map(({ packet }) => packet),
    leaders: JSON.stringify({ firstSlot: 6000, leaders }),
  };
}

interface ListenReport {
  final: boolean;
  verified: boolean;
  received: number;
  distinct: number;
  duplicates: number;
  refused: Record<string, number>;
  challengesAnswered: number | null;
  slotTotals: { slots: number; complete: number };
}

function lastReport({ stdout }: Ended): ListenReport {
  return JSON.parse(stdout.trim().split("\n").at(-1) ?? "{}");
}

async function listening(...args: string[]): Promise<{ listener: Shredway; to: string }> {
  const listener = run("listen", "--port", "0", "--bind", "127.0.0.1", ...args);
  const stream = args.includes("--json") ? "stderr" : "stdout";
  const [, to = ""] = await listener.printed(/listening on (\S+)/, stream);
  return { listener, to };
}

/** Number of packets with at least one unaltered copy, for the options of the test below. */
function unalteredOnce(packets: readonly Uint8Array[], seed: number): number {
  const random = new SeededRandom(seed);
  const options = { copies: 2, shuffle: true, drop: 0.1, corrupt: 0.1 };
  const timed = packets.map((packet, i) => ({ packet, timeNs: i }));
  const created = [...windowsOf(timed)].flatMap((window) =>
    makeCopies(window, options, random, { dropped: 0, corrupted: 0 }),
  );
  const originals = new Set(packets);
  return new Set(created.map(({ packet }) => packet).filter((packet) => originals.has(packet)))
    .size;
}

describe("replay into listen", () => {
  it("counts every copy exactly, and verifies", async () => {
    const { packets, leaders } = makeShreds();
    const capture = write("slots.lpb", writeLpb(packets));
    const { listener, to } = await listening("--leaders", write("leaders.json", leaders), "--json");
    const sent = await shredway(
      "replay",
      capture,
      "--to",
      to,
      "--rate",
      "20000",
      "--copies",
      "3",
      "--shuffle",
      "7",
      "--json",
    );
    expect(sent.code).toBe(0);
    expect(JSON.parse(sent.stdout)).toMatchObject({
      packets: shredsGenerated,
      sent: 3 * shredsGenerated,
      failed: 0,
      dropped: 0,
      corrupted: 0,
      interrupted: false,
      error: null,
    });
    await listener.printed(new RegExp(`"received":${3 * shredsGenerated}`));
    listener.signal("SIGINT");
    const ended = await listener.end();
    expect(ended.code).toBe(0);
    expect(lastReport(ended)).toMatchObject({
      final: true,
      verified: true,
      received: 3 * shredsGenerated,
      distinct: shredsGenerated,
      duplicates: 2 * shredsGenerated,
      refused: {},
      slotTotals: { slots: slotsGenerated, complete: slotsGenerated },
    });
  });

  it("rejects every altered packet, and is reproducible for a seed", async () => {
    const { packets, leaders } = makeShreds();
    const capture = write("slots.lpb", writeLpb(packets));
    const { listener, to } = await listening("--leaders", write("leaders.json", leaders), "--json");
    const shares = ["--drop", "0.1", "--corrupt", "0.1"];
    const options = ["--rate", "20000", "--copies", "2", "--shuffle", "3", ...shares, "--json"];
    const replayOnce = async () => {
      const { code, stdout } = await shredway("replay", capture, "--to", to, ...options);
      expect(code).toBe(0);
      return JSON.parse(stdout);
    };
    const first = await replayOnce();
    expect(first.dropped).toBeGreaterThan(100);
    expect(first.corrupted).toBeGreaterThan(100);
    expect(first.sent).toBe(2 * shredsGenerated - first.dropped);
    await listener.printed(new RegExp(`"received":${first.sent}`));
    const second = await replayOnce();
    expect([second.dropped, second.corrupted]).toEqual([first.dropped, first.corrupted]);
    await listener.printed(new RegExp(`"received":${2 * first.sent}`));
    listener.signal("SIGINT");
    const report = lastReport(await listener.end());
    // An altered copy of a known shred counts as duplicate, because its signature is unaltered.
    const refused = Object.values(report.refused).reduce((total, count) => total + count, 0);
    expect(refused).toBeGreaterThan(0);
    expect(refused).toBeLessThanOrEqual(2 * first.corrupted);
    expect(refused + report.distinct + report.duplicates).toBe(2 * first.sent);
    expect(report.distinct).toBe(unalteredOnce(packets, 3));
  });

  it("warns that nothing was verified without a leader schedule", async () => {
    const { listener, to } = await listening("--shred-version", "98");
    const capture = write("slots.lpb", writeLpb(makeShreds().packets.slice(0, 64)));
    expect((await shredway("replay", capture, "--to", to)).code).toBe(0);
    await listener.printed(/^\d.* refused 64 /m);
    listener.signal("SIGINT");
    const { code, stdout } = await listener.end();
    expect(stdout).toContain("NOT VERIFIED");
    expect(stdout).toContain("refused     64: wrong_version 64");
    expect(code).toBe(0);
  });

  it("ends after the given seconds", async () => {
    const { listener } = await listening("--seconds", "0.2");
    const { code, stdout } = await listener.end();
    expect(stdout).toContain("received    0 in");
    expect(code).toBe(0);
  });

  it("keeps the times of a pcap, sends the packets before a truncation, and reports it", async () => {
    const { packets } = makeShreds();
    const endpoint = parseEndpoint("127.0.0.1:9000");
    const pcap = writePcap(
      packets.slice(0, 101).map((packet, i) => ({
        packet,
        timestampNs: 1_700_000_000_000_000_000n + BigInt(i) * 4_000_000n,
        source: endpoint,
        destination: endpoint,
      })),
    );
    const to = await receiver();
    const whole = write("whole.pcap", pcap);
    const played = await shredway("replay", whole, "--to", to.address, "--speed", "2", "--json");
    expect(JSON.parse(played.stdout).seconds).toBeGreaterThanOrEqual(0.2);
    await until(() => to.packets.length === 101, "101 packets");
    expect(
      to.packets.map((packet) => packet.equals(packets[to.packets.indexOf(packet)] ?? packet)),
    ).not.toContain(false);

    const cut = write("cut.pcap", pcap.subarray(0, pcap.length - 10));
    const broken = await shredway("replay", cut, "--to", to.address, "--speed", "100");
    expect(broken.code).toBe(1);
    expect(broken.stdout).toContain("sent 100 packets");
    expect(broken.stdout).toMatch(/FAILED: .*cut\.pcap: at byte/);
    await until(() => to.packets.length === 201, "100 packets more");
  });
});

describe("listen --prove", () => {
  const challenge = Buffer.from("SWPROOF1token of sixteenand what a service adds");

  /** Settles with the returned datagram and its sender. */
  async function ask(to: string): Promise<{ answer: Buffer; from: string }> {
    const service = createSocket("udp4").bind(0, "127.0.0.1");
    closing({ close: () => void service.close() });
    await once(service, "listening");
    const { bytes, port } = parseEndpoint(to);
    service.send(challenge, port, formatAddress(bytes));
    const answer = new Promise<{ answer: Buffer; from: string }>((resolve) => {
      service.once("message", (packet, { address, port: of }) =>
        resolve({ answer: packet, from: `${address}:${of}` }),
      );
    });
    return answer;
  }

  it("answers a challenge from its own address, and reports the number", async () => {
    const { listener, to } = await listening("--prove");
    await listener.printed(/^answering ownership challenges$/m);
    expect(await ask(to)).toEqual({ answer: challenge, from: to });
    await listener.printed(/^0:0\d .*refused 0 .*ownership challenges answered 1$/m);
    listener.signal("SIGINT");
    const { code, stdout } = await listener.end();
    expect(code).toBe(0);
    expect(stdout.trim().split("\n").at(-1)).toBe("ownership challenges answered 1");
  });

  it("reports it in JSON, and omits it if it does not answer", async () => {
    const { listener, to } = await listening("--prove", "--json");
    await listener.printed(/^answering ownership challenges$/m, "stderr");
    expect(await ask(to)).toEqual({ answer: challenge, from: to });
    await listener.printed(/"challengesAnswered":1/);
    listener.signal("SIGINT");
    expect(lastReport(await listener.end())).toMatchObject({
      final: true,
      received: 1,
      challengesAnswered: 1,
      refused: {},
    });

    const silent = await listening("--json", "--seconds", "1.5");
    const service = createSocket("udp4");
    closing({ close: () => void service.close() });
    const answered: Buffer[] = [];
    service.on("message", (packet) => answered.push(packet));
    service.send(challenge, parseEndpoint(silent.to).port, "127.0.0.1");
    const ended = await silent.listener.end();
    expect(lastReport(ended)).toMatchObject({
      challengesAnswered: null,
      refused: { too_short: 1 },
    });
    expect(ended.stderr).not.toContain("challenge");
    expect(answered).toEqual([]);
  });
});

describe("replay without a receiver", () => {
  it("reports that, with exit code 1", async () => {
    const gone = `127.0.0.1:${await freeUdpPort()}`;
    const capture = write("slots.lpb", writeLpb(makeShreds().packets.slice(0, 64)));
    const text = await shredway("replay", capture, "--to", gone);
    expect(text.stdout).toContain(`FAILED: ${gone} is unreachable or has no listener`);
    expect(text.code).toBe(1);
    const json = await shredway("replay", capture, "--to", gone, "--json");
    expect(JSON.parse(json.stdout)).toMatchObject({ packets: 64, sent: 64, shortenedGaps: 0 });
    expect(JSON.parse(json.stdout).refused).toBeGreaterThan(0);
    expect(json.code).toBe(1);
  });
});

describe("start --config", () => {
  interface Setting {
    destinations: readonly UdpReceiver[];
    workers?: number;
    listen?: string;
  }

  function configText({ destinations, workers = 1, listen = "127.0.0.1:0" }: Setting): string {
    const rows = destinations.map(({ address }) => `{ address: "${address}", tier: tier-1 }`);
    return `relay:
  listen: "${listen}"
  workers: ${workers}
  shredVersion: ${traffic.shredVersion}
  leaders: { file: leaders.json }
  sources: [ { name: local, address: 127.0.0.1, tier: tier-1 } ]
  destinations: [ ${rows.join(", ")} ]
  allowPrivateDestinations: true
`;
  }

  it("relays, reloads, retains the old tables for an invalid file, drains", async () => {
    // A slot fits into the smallest receive buffer of a destination.
    const { packets, leaders } = makeShreds(2);
    const perSlot = packets.length / slotsGenerated;
    const captures = Array.from({ length: slotsGenerated }, (_, i) =>
      write(`slot-${i}.lpb`, writeLpb(packets.slice(i * perSlot, (i + 1) * perSlot))),
    );
    write("leaders.json", leaders);
    const [alpha, bravo] = [await receiver(), await receiver()];
    const file = write("shredway.yaml", configText({ destinations: [alpha] }));
    const service = run("start", "--config", file, "--stats", "1");
    const [, to = ""] = await service.printed(/^ready listen=(\S+) workers=1 sources=1/m);
    const play = async (slot: number) => {
      const args = ["replay", captures[slot] ?? "", "--to", to, "--copies", "2", "--shuffle", "1"];
      expect((await shredway(...args, "--rate", "20000")).code).toBe(0);
    };

    await service.printed(/the leader schedule covers slots 6000 to 7999/, "stderr");
    await play(0);
    await until(() => alpha.packets.length === perSlot, "every shred of slot 0 once");
    await service.printed(new RegExp(`"first":${perSlot},"duplicate":${perSlot}`), "stderr");

    writeFileSync(
      file,
      configText({ destinations: [alpha, bravo], workers: 2, listen: "127.0.0.1:20000" }),
    );
    service.signal("SIGHUP");
    await service.printed(/reloaded sources, destinations and leaders/, "stderr");
    await service.printed(/restart needed for: relay\.listen, relay\.workers/, "stderr");
    await play(1);
    await until(() => alpha.packets.length === 2 * perSlot, "slot 1 at the old destination");
    await until(() => bravo.packets.length === perSlot, "slot 1 at the new destination");

    writeFileSync(
      file,
      configText({ destinations: [bravo] }).replace("tier: tier-1", "tier: tier-9"),
    );
    service.signal("SIGHUP");
    await service.printed(
      /reload failed, the previous configuration stays in force: .*tier-9/,
      "stderr",
    );
    await play(2);
    await until(() => alpha.packets.length === 3 * perSlot, "slot 2 at the first destination");
    await until(() => bravo.packets.length === 2 * perSlot, "slot 2 at the second destination");

    service.signal("SIGTERM");
    const { code, stderr } = await service.end();
    expect(code).toBe(0);
    expect(stderr).toContain('"msg":"ended"');
    expect(alpha.packets.length).toBe(3 * perSlot);
    const sent = new Set(packets.map((packet) => Buffer.from(packet).toString("hex")));
    expect(new Set(alpha.packets.map((packet) => packet.toString("hex")))).toEqual(sent);
  });

  it("ends immediately despite a pipe without a writer, and never sends to itself", async () => {
    write("leaders.json", makeShreds().leaders);
    const file = write("shredway.yaml", configText({ destinations: [] }));
    const service = run("start", "--config", file);
    const [, to = ""] = await service.printed(/^ready listen=(\S+)/m);
    writeFileSync(
      file,
      configText({ destinations: [] }).replace(
        "destinations: [  ]",
        `destinations: [ { address: "${to}", tier: tier-1 } ]`,
      ),
    );
    service.signal("SIGHUP");
    await service.printed(/reload failed.*is a listener of the relay itself/, "stderr");
    rmSync(file);
    execFileSync("mkfifo", [file]);
    service.signal("SIGHUP");
    await service.printed(/reload failed.*expected a regular file, got a pipe/, "stderr");
    service.signal("SIGTERM");
    expect((await service.end()).code).toBe(0);
  });

  it("warns if authentication is off, and prints the effective configuration", async () => {
    const file = write(
      "open.yaml",
      "relay: { listen: 127.0.0.1:0, shredVersion: 1, authentication: off }",
    );
    const service = run("start", "--config", file);
    await service.printed(/^ready .*authentication=off transmit=(clone|socket)$/m);
    await service.printed(/AUTHENTICATION IS OFF/, "stderr");
    service.signal("SIGINT");
    expect((await service.end()).code).toBe(0);
    const { code, stdout } = await shredway("start", "--config", file, "--print-config");
    expect(code).toBe(0);
    expect(stdout).toContain("authentication: off");
    expect(stdout).toContain("failedChecksPerSecond: 1000");
  });

  it("names a port in use, and ends with exit code 1", async () => {
    const taken = await receiver();
    write("leaders.json", makeShreds().leaders);
    const file = write("taken.yaml", configText({ destinations: [], listen: taken.address }));
    const service = await shredway("start", "--config", file);
    expect(service.code).toBe(1);
    expect(service.stderr).toContain(taken.address);
    expect(service.stderr).toContain("in use");
    for (const [name, address] of [
      ["--udp", taken.address],
      ["--rpc", await occupiedTcpAddress()],
      ["--http", await occupiedTcpAddress()],
      ["--quic", taken.address],
      ["--shredstream", await occupiedTcpAddress()],
      ["--streams", await occupiedTcpAddress()],
    ] as const) {
      const sandbox = await shredway("start", ...sandboxOptions({ [name]: address }));
      expect(sandbox.code).toBe(1);
      expect(sandbox.stderr).toContain(address);
      expect(sandbox.stderr).toContain("--http 127.0.0.1:9780 --udp 127.0.0.1:21000");
    }
    const checked = await shredway("doctor", "--config", file);
    expect(checked.code).toBe(1);
    expect(checked.stdout).toMatch(/fail {2}listen/);
  });
});

/** Options of a sandbox with dynamic ports and its own folder. */
function sandboxOptions(besides: Readonly<Record<string, string>> = {}): string[] {
  const names = ["udp", "rpc", "quic", "streams", "http"];
  const ports = names.map((name) => [`--${name}`, "127.0.0.1:0"]);
  const data = join(folder, `data-${++folders}`);
  const options = { ...Object.fromEntries(ports), "--data": data, ...besides };
  return Object.entries<string>(options).flat();
}
let folders = 0;

/** Address of a TCP listener that lives as long as the test. */
async function occupiedTcpAddress(): Promise<string> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  closing({ close: () => void server.close() });
  const address = server.address();
  return typeof address === "object" && address ? `127.0.0.1:${address.port}` : "";
}

describe("start without a configuration", () => {
  it("runs the sandbox: ready, growing numbers, own landings, no duplicate, exit code 0", async () => {
    const sandbox = run("start", ...sandboxOptions());
    await sandbox.printed(/^ready listen=127\.0\.0\.1:\d+ workers=1 sources=4 destinations=4/m);
    await sandbox.printed(/^\d.*verified by destinations.*landed [1-9]/m);
    const verified = () => [
      ...sandbox.stdout.matchAll(/verified by destinations ([\d,]+) {2}duplicates (\d+)/g),
    ];
    const counts = () => verified().map(([, count = ""]) => Number(count.replaceAll(",", "")));
    await until(() => new Set(counts()).size >= 3, "three lines with other numbers");
    sandbox.signal("SIGINT");
    const { code, stdout } = await sandbox.end();
    expect(code).toBe(0);
    expect(counts()).toEqual(counts().toSorted((a, b) => a - b));
    expect(verified().every(([, , duplicates]) => duplicates === "0")).toBe(true);
    expect(stdout).toContain("Duplicates at the destinations: 0.");
  });

  it("ends silently when its output is closed", async () => {
    const sandbox = run("start", ...sandboxOptions());
    await sandbox.printed(/^ready /m);
    sandbox.closeStdout();
    const { code, stderr } = await sandbox.end();
    expect(code).toBe(0);
    expect(stderr).toBe("");
  });
});
