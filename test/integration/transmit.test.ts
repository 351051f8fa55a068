// The transmit modes of the relay between two network namespaces: the same bytes at plain UDP receivers
// by socket and by clone, correct checksums on the wire, correct counters. Also without privileges and
// after kill -9.

import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { closing } from "../support/closing.ts";
import { hasTwoNamespaces, TwoNamespaces } from "../support/network/two-namespaces.ts";
import { Shredway } from "../support/processes/shredway.ts";
import { hasTestdata, leaderKey, packetsOf, testdataFile } from "../support/shreds/captures.ts";
import { ShredTraffic } from "../support/shreds/shred-traffic.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";
import { type Feed, receivingPort, TransmitHarness } from "../support/transmit/transmit-harness.ts";

function hasTool(name: string): boolean {
  try {
    execFileSync("which", [name], { stdio: "pipe" });
    return true;
  } catch {
    return false;
  }
}

function realFeed(): Feed {
  const folder = "sig-testnet-356797362";
  const data = packetsOf(testdataFile(folder, "data.lpb"));
  const code = packetsOf(testdataFile(folder, "code-reconstructed.lpb"));
  // Both lengths in every burst.
  const mixed = data.flatMap((packet, i) => [packet, ...code.slice(i, i + 1)]);
  return {
    packets: mixed.slice(0, 512),
    leader: { key: leaderKey(folder), slot: 356797362n },
    version: 9065,
  };
}

function startFeed(): Feed {
  const traffic = new ShredTraffic({
    seed: 10,
    leaders: 1,
    firstSlot: 5000n,
    shredVersion: 7,
    fecSetsPerSlot: 4,
    slotNs: 400_000_000,
  });
  const { packets } = traffic.completeSlot();
  return {
    packets: packets.map(({ packet }) => packet),
    leader: { key: traffic.leaderKeys[0] ?? new Uint8Array(32), slot: 5000n },
    version: 7,
  };
}

function setOffload(lab: TwoNamespaces, isOn: boolean): void {
  const value = isOn ? "on" : "off";
  lab.run(
    lab.near,
    "ethtool",
    "-K",
    "cable",
    "tx",
    value,
    "gso",
    value,
    "tx-udp-segmentation",
    value,
  );
}

/** Prints tshark's result for both checksums of every shred; 1: correct. */
function tsharkOptions(file: string): string[] {
  const checks = ["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
  const fields = ["-T", "fields", "-e", "udp.checksum.status", "-e", "ip.checksum.status"];
  return ["-r", file, ...checks, "-Y", `udp.dstport == ${receivingPort}`, ...fields];
}

/** CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_PERFMON and CAP_BPF. */
const networkCapabilities = (1n << 12n) | (1n << 21n) | (3n << 38n);
const without = ["setpriv", "--bounding-set", "-net_admin,-bpf,-sys_admin"];

/** The capabilities that any thread may use. */
function permittedOf(pid: number): bigint {
  return readdirSync(`/proc/${pid}/task`)
    .map((thread) => readFileSync(`/proc/${pid}/task/${thread}/status`, "utf8"))
    .map((status) => BigInt(`0x${/^CapPrm:\t(\w+)$/m.exec(status)?.[1] ?? "0"}`))
    .reduce((all, permitted) => all | permitted, 0n);
}

/** Starts a service in its own namespace, and ends it when it is ready. */
async function startOnce(lab: TwoNamespaces, words: readonly string[], transmit: string) {
  const file = join(temporaryFolder(), "shredway.yaml");
  writeFileSync(
    file,
    `relay: { listen: "0.0.0.0:0", shredVersion: 1, authentication: off, transmit: ${transmit} }`,
  );
  const before = ["ip", "netns", "exec", lab.near, ...words];
  const service = Shredway.in(before, "start", "--config", file);
  closing({ close: () => service.kill() });
  const [, mode] = await service.printed(/^ready .* transmit=(\w+)$/m);
  const isPrivileged = (permittedOf(service.pid) & networkCapabilities) !== 0n;
  service.signal("SIGTERM");
  const { code, stderr } = await service.end();
  return { mode, isPrivileged, code, stderr };
}

describe.skipIf(!hasTwoNamespaces)("the relay's transmit modes", () => {
  for (const transmit of ["socket", "clone"] as const) {
    it.skipIf(!hasTestdata || !hasTool("ethtool"))(
      `${transmit}: a real capture, offload on and off`,
      async () => {
        const feed = realFeed();
        const harness = new TransmitHarness();
        await harness.open(feed, transmit, 12);
        expect(harness.mode).toBe(transmit);
        const half = feed.packets.length / 2;
        setOffload(harness.lab, true);
        await harness.play(feed.packets.slice(0, half));
        if (transmit === "clone")
          await harness.until(({ cloned }) => cloned > 0, "somebody that goes by clone");
        setOffload(harness.lab, false);
        await harness.play(feed.packets.slice(half));
        await harness.check();
        const { triggers, fallbacks } = await harness.state();
        expect(triggers > 0).toBe(transmit === "clone");
        expect(fallbacks).toBe(0);
      },
    );
  }

  it("1,000 destinations, each shred once", async () => {
    const feed = startFeed();
    const harness = new TransmitHarness();
    await harness.open(feed, "clone", 500);
    await harness.play(feed.packets.slice(0, 64)); // the kernel learns its neighbours
    await harness.until(({ cloned }) => cloned >= 900, "nearly all by clone");
    await harness.play(feed.packets.slice(64));
    await harness.check();
  });

  it.skipIf(!hasTool("tshark") || !hasTool("ethtool"))(
    "checksums on the wire are correct in both modes",
    async () => {
      const feed = startFeed();
      const harness = new TransmitHarness();
      await harness.open(feed, "clone", 6);
      setOffload(harness.lab, false); // with it, a veth transfers unfinished checksums
      await harness.play(feed.packets.slice(0, 32));
      await harness.until(({ cloned }) => cloned >= 10, "destinations by clone");
      const file = join(temporaryFolder(), "cable.pcap");
      const { triggers } = await harness.state();
      const capture = harness.lab.capture(file, receivingPort, 12 * 128);
      await capture.started;
      await harness.play(feed.packets.slice(32, 160));
      await harness.check();
      expect((await harness.state()).triggers).toBeGreaterThan(triggers);
      await capture.done();
      const verdicts = execFileSync("tshark", tsharkOptions(file), {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      })
        .split("\n")
        .filter((line) => line !== "");
      expect(verdicts.length).toBe(12 * 128);
      expect(new Set(verdicts)).toEqual(new Set(["1\t1", "1\t"])); // IPv6 has no header checksum
    },
  );

  it("without the capabilities: names the missing ones, and delivers the same by socket", async () => {
    const feed = startFeed();
    const harness = new TransmitHarness(without);
    await harness.open(feed, "clone", 6);
    expect(harness.mode).toBe("socket");
    expect(harness.refusal).toMatch(/CAP_NET_ADMIN/);
    await harness.play(feed.packets.slice(0, 128));
    await harness.check();
  });

  it("a service reports its transmit mode at startup, and drops its privileges", async () => {
    const lab = TwoNamespaces.open();
    const said = ({ stderr }: { readonly stderr: string }) =>
      stderr.split("\n").filter((line) => /transmit[ =]|sent by socket/.test(line));
    const expected = { isPrivileged: false, code: 0 };
    const socket = await startOnce(lab, [], "socket");
    expect(socket).toMatchObject({ ...expected, mode: "socket" });
    expect(said(socket)).toEqual([
      expect.stringMatching(/"level":"info".*transmit=socket: .*: relay.transmit is socket"/),
    ]);
    for (const wish of ["clone", "auto"]) {
      const clone = await startOnce(lab, [], wish);
      expect(clone).toMatchObject({ ...expected, mode: "clone" });
      expect(said(clone)).toEqual([
        expect.stringMatching(/"level":"info".*"interface":"shredway\d+".*transmit=clone: /),
      ]);
    }
    const refused = await startOnce(lab, without, "clone");
    expect(refused).toMatchObject({ ...expected, mode: "socket" });
    expect(said(refused)).toEqual([
      expect.stringMatching(/"level":"warn".*relay.transmit is clone.*CAP_NET_ADMIN/),
    ]);
    const quiet = await startOnce(lab, without, "auto");
    expect(quiet).toMatchObject({ ...expected, mode: "socket" });
    expect(said(quiet)).toEqual([
      expect.stringMatching(/"level":"info".*transmit=socket: .*CAP_NET_ADMIN/),
    ]);
    lab.run(lab.near, "ip", "xfrm", "policy", "add", "dir", "out", "dst", "10.8.0.0/16");
    const ruled = await startOnce(lab, [], "auto");
    expect(ruled).toMatchObject({ ...expected, mode: "socket" });
    expect(said(ruled)).toEqual([
      expect.stringMatching(/"level":"info".*transmit=socket: .*IPsec policies.*bypass them"/),
    ]);
  });

  it("leaves no interface after close and after kill -9", async () => {
    const feed = startFeed();
    const harness = new TransmitHarness();
    await harness.open(feed, "clone", 6);
    const links = () => harness.lab.run(harness.lab.near, "ip", "-o", "link");
    expect(links()).toMatch(/: shredway\d/);
    await harness.relay.kill();
    expect(links()).not.toMatch(/: shredway\d/);
    const next = harness.lab.child(harness.lab.near);
    const opened = await next.call<{ transmit: { mode: string } }>(
      "openRelay",
      {
        listen: ["0.0.0.0:0"],
        workers: 1,
        tiers: ["any"],
        authentication: "off",
        shredVersion: 7,
        transmit: "clone",
      },
      feed.leader,
    );
    expect(opened.transmit.mode).toBe("clone");
  });
});
