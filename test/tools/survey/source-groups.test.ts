// `shredway sources groups` between two network namespaces: groups that are discovered by their
// routes and deliver shreds, other datagrams, or nothing.

import { describe, expect, it } from "vitest";
import { closing } from "../../support/closing.ts";
import { hasTwoNamespaces, TwoNamespaces } from "../../support/network/two-namespaces.ts";
import { Shredway } from "../../support/processes/shredway.ts";
import { ShredTraffic } from "../../support/shreds/shred-traffic.ts";

const shreds = "233.84.178.1";
const other = "233.84.178.12";
const silent = "233.84.178.16";

function surveyIn(lab: TwoNamespaces, ...words: readonly string[]): Shredway {
  const before = ["ip", "netns", "exec", lab.near];
  const run = Shredway.in(before, "sources", "groups", "--interface", "cable", ...words);
  closing({ close: () => run.kill() });
  return run;
}

function slotPackets(): Uint8Array[] {
  const traffic = new ShredTraffic({
    seed: 5,
    leaders: 1,
    firstSlot: 5000n,
    shredVersion: 7,
    fecSetsPerSlot: 2,
    slotNs: 400_000_000,
  });
  return traffic.completeSlot().packets.map(({ packet }) => packet);
}

it("says that an interface does not exist", async () => {
  const words = ["sources", "groups", "--interface", "absent0", "--seconds", "0.1"];
  const ended = await Shredway.run(...words).end();
  expect(ended.code).toBe(1);
  expect(ended.stdout).toBe("");
  expect(ended.stderr).toContain("no groups: the interface absent0 does not exist");
});

it("refuses a duration that is too long", async () => {
  const ended = await Shredway.run("sources", "groups", "--seconds", "601").end();
  expect(ended.code).toBe(2);
  expect(ended.stderr).toMatch(/--seconds: .*600.*601|--seconds: .*601.*600/);
});

describe.skipIf(!hasTwoNamespaces)("sources groups", () => {
  it("shows what each discovered group delivers, until it is stopped", async () => {
    const lab = TwoNamespaces.open();
    lab.ip(lab.far, "route add 233.84.178.0/24 dev cable");
    for (const group of [shreds, other, silent])
      lab.ip(lab.near, `route add ${group} via 10.1.0.2 dev cable`);
    const peers = lab.child(lab.far);
    await peers.call("openReceivers", ["10.1.0.2"], 9000);
    const run = surveyIn(lab, "--seconds", "600", "--json");
    for (const group of [shreds, other, silent])
      await run.printed(new RegExp(`group ${group}:7733 on cable joined`), "stderr");

    const packets = slotPackets();
    await peers.call("send", packets, `${shreds}:7733`);
    await peers.call("send", [Buffer.from("445a0001", "hex")], `${shreds}:7733`);
    await peers.call("send", [Buffer.alloc(100, 1), Buffer.alloc(1400, 2)], `${other}:7733`);
    await run.printed(
      new RegExp(`"group":"${shreds}","problem":null,"shreds":${packets.length},"heartbeats":1,`),
    );
    await run.printed(
      new RegExp(`"group":"${other}","problem":null,"shreds":0,"heartbeats":0,"other":2,`),
    );
    run.signal("SIGINT");
    const ended = await run.end();
    expect(ended.code).toBe(0);
    const last: unknown = JSON.parse(ended.stdout.trim().split("\n").at(-1) ?? "");
    expect(last).toMatchObject({
      final: true,
      problem: null,
      groups: [
        { group: shreds, shreds: packets.length },
        { group: other, other: 2 },
        { group: silent, shreds: 0, heartbeats: 0, other: 0 },
      ],
    });
  });

  it("ends by itself, and fails if no group delivers shreds", async () => {
    const lab = TwoNamespaces.open();
    lab.ip(lab.near, `route add ${silent} via 10.1.0.2 dev cable`);
    const ended = await surveyIn(lab, "--seconds", "0.1").end();
    expect(ended.code).toBe(1);
    expect(ended.stdout).toMatch(/^GROUP +SHREDS +OTHER +CONTENT\n/);
    expect(ended.stdout).toMatch(/\n233\.84\.178\.16 +0\/s +0\/s +no datagram\n$/);
    lab.ip(lab.near, `route del ${silent}`);
    const empty = await surveyIn(lab, "--seconds", "0.1").end();
    expect(empty.code).toBe(1);
    expect(empty.stderr).toContain("no groups: no multicast group has a route through cable");
  });
});
