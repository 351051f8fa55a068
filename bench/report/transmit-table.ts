// The generated tables of docs/transmit.md: sockets compared with clones, from the stored report.

import type { StoredReport } from "./stored-report.ts";
import { Cells } from "./summary-table.ts";
import { renderMarkdown } from "./table.ts";

const destinationCounts = [10, 50, 200, 1000];
const deviceCuts = ", segments cut by the device";
const kernelCuts = ", segments cut by the kernel";

function costTable(cells: Cells): string {
  const costs = (count: number, mode: string, cut: string): string =>
    ["burst of 1", `burst of 8${cut}`, `burst of 32${cut}`]
      .map((burst) => cells.at("transmit", [`${count} × ${burst}`], mode))
      .join(" / ");
  return renderMarkdown({
    title:
      "CPU time per delivered datagram (ns), bursts of 1 / 8 / 32 shreds, to a device that drops them",
    columns: [
      "destinations",
      "socket, device segments",
      "clone, device segments",
      "socket, kernel segments",
      "clone, kernel segments",
    ],
    rows: destinationCounts.map((count) => [
      count.toLocaleString("en-US"),
      costs(count, "socket", deviceCuts),
      costs(count, "clone", deviceCuts),
      costs(count, "socket", kernelCuts),
      costs(count, "clone", kernelCuts),
    ]),
  });
}

function burstTable(cells: Cells): string {
  const latency = (mode: string): string => `${cells.at("transmit", [mode], "last p50")} µs`;
  const rate = (cut: string, mode: string): string =>
    cells.at("transmit", [`null, 200 × burst of 32${cut}`, mode], "shreds/s");
  return renderMarkdown({
    title: "Bursts of 32 shreds",
    columns: ["", "bare sendmmsg", "socket", "clone"],
    rows: [
      [
        "latency of the send path to the last of 50 destinations, p50 (veth)",
        latency("bare sendmmsg"),
        latency("socket"),
        latency("clone"),
      ],
      ...[deviceCuts, kernelCuts].map((cut) => [
        `whole relay: shreds per second to 200 destinations without loss, one core${cut}`,
        "",
        rate(cut, "socket"),
        rate(cut, "clone"),
      ]),
    ],
  });
}

/** The generated part of docs/transmit.md. */
export function transmitPart(stored: StoredReport): string {
  const cells = new Cells(stored);
  if (!cells.has("transmit")) return "The stored report does not contain this measurement.";
  return [costTable(cells), "", burstTable(cells)].join("\n");
}
