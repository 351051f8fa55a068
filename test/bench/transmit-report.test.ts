import { describe, expect, it } from "vitest";
import { parseLine } from "../../bench/report/lines.ts";
import { transmitSection } from "../../bench/sections/transmit-section.ts";

type Fields = Record<string, string | number | boolean>;
const line = (fields: Fields) => parseLine(JSON.stringify(fields));
const rounds = [1, 2, 3, 4, 5];

// Numbers per shred to 200 destinations.
const nsPerDatagram = {
  bare_sendmmsg: 1700,
  socket: 1700,
  clone: 340,
  packet_ring: 510,
  xdp: 425,
};

function costLines(changes: { clone?: Fields; all?: Fields } = {}) {
  return rounds.flatMap((round) =>
    Object.entries(nsPerDatagram).map(([way, ns]) =>
      line({
        kind: "transmit",
        way,
        device: "null",
        destinations: 200,
        burst: 1,
        segmentation: "device",
        round,
        shreds: 10,
        cpu_ns: ns * 200 * 10,
        delivered: 1,
        told: 1,
        ...changes.all,
        ...(way === "clone" ? changes.clone : {}),
      }),
    ),
  );
}

function latencyLines(last: Record<string, number>, lost = 0) {
  return rounds.flatMap((round) =>
    Object.entries(last).map(([way, ns]) =>
      line({
        kind: "transmit_latency",
        way,
        destinations: 200,
        burst: 32,
        round,
        samples: 320 - lost,
        lost,
        first_p50_ns: 1000,
        last_p50_ns: ns,
        last_p99_ns: ns * 2 + round,
      }),
    ),
  );
}

const rateLine = (fields: Fields) =>
  line({
    kind: "transmit_rate",
    way: "clone",
    device: "veth",
    destinations: 200,
    burst: 1,
    segmentation: "device",
    shreds_per_second: 12_000,
    fallbacks: 0,
    generator_limit: false,
    ...fields,
  });

describe("cost of the transmit modes", () => {
  it("divides CPU time by datagrams, and every mode by bare sendmmsg of the same round", () => {
    const section = transmitSection(costLines());
    const [costs, ratios] = section.tables;
    expect(costs?.rows).toEqual([["200 × burst of 1", "1,700", "1,700", "340", "510", "425"]]);
    expect(ratios?.rows[0]?.slice(1)).toEqual([
      "1.00 (1.00–1.00)",
      "0.200 (0.200–0.200)",
      "0.300 (0.300–0.300)",
      "0.250 (0.250–0.250)",
    ]);
    expect(section.findings.map(({ what, target, verdict }) => [what, target, verdict])).toEqual([
      ["clone ÷ bare sendmmsg, 200 × burst of 1", 0.25, "met"],
    ]);
  });

  it("has a lower target for bursts, and the lowest where the device segments", () => {
    const verdictsOf = (segmentation: string) =>
      transmitSection(costLines({ all: { burst: 8, segmentation } })).findings.map(
        ({ target, verdict }) => [target, verdict],
      );
    expect(verdictsOf("device")).toEqual([[0.05, "missed"]]);
    expect(verdictsOf("kernel")).toEqual([[0.16, "missed"]]);
    expect(transmitSection(costLines({ all: { destinations: 10 } })).findings).toEqual([]);
    expect(transmitSection(costLines({ all: { device: "veth" } })).findings).toEqual([]);
  });

  it("gives a mode no cost if the device's counters contradict it, and shows the loss", () => {
    const section = transmitSection(costLines({ clone: { delivered: 0.6 } }));
    expect(section.tables[0]?.rows[0]?.[3]).toBe("40.0 % lost");
    expect(section.tables[1]?.rows[0]?.[2]).toBe("–");
    expect(section.findings[0]?.verdict).toBe("inconclusive");
    expect(section.notes.join("\n")).toContain("what was asked for: 5 of 25");
  });

  it("gives a mode no cost if its own counters show a loss", () => {
    const section = transmitSection(costLines({ clone: { told: 0.9 } }));
    expect(section.findings[0]?.verdict).toBe("inconclusive");
  });
});

describe("latency of the transmit modes", () => {
  it("compares the last destination's median round by round", () => {
    const section = transmitSection(
      latencyLines({ bare_sendmmsg: 6_000_000, clone: 150_000, forwarder: 1e7, relay_clone: 1e6 }),
    );
    expect(
      section.findings.map(({ what, value, verdict }) => [what, value.median, verdict]),
    ).toEqual([
      ["p50 to the last destination, clone ÷ bare sendmmsg, 200 × burst of 32", 0.025, "met"],
      ["p50 to the last destination, relay by clone ÷ forwarder, 200 × burst of 32", 0.1, "missed"],
    ]);
    expect(section.tables[0]?.rows[1]).toEqual([
      "clone",
      "1.00",
      "150",
      "150–150",
      "300",
      "1600",
      "0",
    ]);
  });

  it("has no median without values", () => {
    const section = transmitSection(latencyLines({ bare_sendmmsg: 6_000_000, clone: 0 }, 320));
    expect(section.findings.map(({ verdict }) => verdict)).toEqual([
      "inconclusive",
      "inconclusive",
    ]);
    expect(section.tables[0]?.rows[0]?.slice(-2)).toEqual(["0", "1600"]);
  });
});

describe("rate of the whole relay", () => {
  it("judges only the clone", () => {
    const section = transmitSection([
      rateLine({ way: "socket", shreds_per_second: 2800 }),
      rateLine({}),
      rateLine({ burst: 32, segmentation: "kernel", shreds_per_second: 9000 }),
    ]);
    expect(section.findings.map(({ what, verdict }) => [what, verdict])).toEqual([
      ["relay by clone without loss, one core, veth, 200 × burst of 1", "met"],
      [
        "relay by clone without loss, one core, veth, 200 × burst of 32, segments cut by the kernel",
        "missed",
      ],
    ]);
    expect(section.tables[0]?.rows[0]).toEqual([
      "veth, 200 × burst of 1",
      "socket",
      "2,800",
      "560,000",
      "0",
    ]);
  });
});

describe("skipped measurements", () => {
  it("are named once, with the reason", () => {
    const skipped = line({ kind: "transmit_skipped", what: "clone", why: "grant CAP_BPF" });
    const section = transmitSection([skipped, skipped, ...costLines()]);
    expect(section.notes.filter((note) => note.startsWith("Skipped"))).toEqual([
      "Skipped: clone (grant CAP_BPF).",
    ]);
  });

  it("leave a section without tables if everything was skipped", () => {
    const section = transmitSection([
      line({ kind: "transmit_skipped", what: "everything", why: "no namespace" }),
    ]);
    expect(section.notes).toEqual(["Skipped: everything (no namespace)."]);
    expect([section.tables, section.findings]).toEqual([[], []]);
  });
});
