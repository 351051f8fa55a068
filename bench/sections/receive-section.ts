// Ways in: sockets compared with AF_XDP in copy mode. Converts lines of the receive scenario to a table
// and findings.

import { byRound, type Line, numberOf, ofKind, textOf } from "../report/lines.ts";
import { perRound, type Rounds, summarise } from "../report/statistics.ts";
import { number, type Table } from "../report/table.ts";
import { finding, type Section } from "./section.ts";

const ways = {
  dropped: "dropped at once",
  socket: "socket",
  socket_sums: "socket, sums by kernel",
  passed: "socket, past the program",
  xdp: "AF_XDP",
} as const;

const burstOf = (line: Line) => numberOf(line, "burst");

function roundsOf(lines: readonly Line[], burst: number, way: string): Rounds {
  const own = lines.filter((line) => burstOf(line) === burst && line.get("way") === way);
  const rounds = byRound(
    own,
    () => way,
    (line) => numberOf(line, "cpu_ns") / numberOf(line, "datagrams"),
  );
  return rounds.get(way) ?? new Map();
}

/** AF_XDP ÷ socket, without the part of the sender. */
function ratioOf(lines: readonly Line[], burst: number) {
  const inputs = ["xdp", "socket", "dropped"].map((way) => roundsOf(lines, burst, way));
  return summarise(
    perRound(inputs, ([xdp = 0, socket = 0, dropped = 0]) => (xdp - dropped) / (socket - dropped)),
  );
}

export function receiveSection(lines: readonly Line[]): Section {
  const received = ofKind(lines, "receive");
  const bursts = [...new Set(received.map(burstOf))];
  const median = (burst: number, way: string) =>
    number(summarise([...roundsOf(received, burst, way).values()]).median);
  const table: Table = {
    title: "CPU time per datagram (ns), sender included, by size of bursts",
    columns: ["burst", ...Object.values(ways), "(AF_XDP − dropped) ÷ (socket − dropped)"],
    rows: bursts.map((burst) => [
      String(burst),
      ...Object.keys(ways).map((way) => median(burst, way)),
      number(ratioOf(received, burst).median),
    ]),
  };
  const lost = received.reduce((sum, line) => sum + numberOf(line, "lost"), 0);
  const skipped = ofKind(lines, "transmit_skipped").map(
    (line) => `Skipped: ${textOf(line, "what")} (${textOf(line, "why")}).`,
  );
  return {
    name: "receive",
    title: "The ways in: socket and AF_XDP",
    notes: [
      ...skipped,
      "One thread sends shreds at one end of a veth and receives them at the other, after poll(). The " +
        "kernel's work for the receiver runs inside the send call. Frames for another MAC address are " +
        "dropped by the receiver's IP layer, which gives the sender's part. AF_XDP in copy mode, with " +
        "checksums and receive times.",
      "Socket: the checksum is left to the card, as if a card had verified it. Past the program: the " +
        "same while AF_XDP receives for another port. A veth converts each packet for the program, " +
        "which a card does not.",
      `Datagrams that did not arrive: ${lost}.`,
    ],
    tables: received.length > 0 ? [table] : [],
    findings: bursts.map((burst) =>
      finding(
        `received by AF_XDP ÷ by socket, bursts of ${burst}, copies on veth`,
        ratioOf(received, burst),
        { target: 1, unit: "×" },
      ),
    ),
    values: Object.fromEntries(
      bursts.flatMap((burst) => [
        [`AF_XDP ÷ socket, bursts of ${burst}`, ratioOf(received, burst)],
        ...Object.keys(ways).map((way) => [
          `${way}, bursts of ${burst}, ns`,
          summarise([...roundsOf(received, burst, way).values()]),
        ]),
      ]),
    ),
  };
}
