// The tables of docs/metrics.md, generated from the list of metrics.
//
// Called by the test that compares the document with the list. Pure.

import { durationBounds } from "../../core/duration-histogram.ts";
import { metricParts } from "./list.ts";
import { coarseBounds, fineBounds } from "./native-histogram.ts";
import { unitOf } from "./types.ts";

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

function boundsText(bounds: readonly number[]): string {
  return bounds.map(String).join(", ");
}

/** One table for each part of the service. */
export function describeMetrics(): string {
  const lines: string[] = [];
  for (const { title, metrics } of metricParts) {
    lines.push(
      `### ${title}`,
      "",
      "| metric | type | unit | labels | meaning |",
      "|---|---|---|---|---|",
    );
    for (const { name, type, labels, help, formerName } of metrics) {
      const meaning = formerName === undefined ? help : `${help} Formerly \`${formerName}\`.`;
      const labelCell = labels.map((label) => `\`${label}\``).join(", ");
      lines.push(
        `| \`${name}\` | ${type} | ${unitOf(name) ?? ""} | ${labelCell} | ${cell(meaning)} |`,
      );
    }
    lines.push("");
  }
  lines.push(
    "### Bounds of the histograms",
    "",
    "Bounds are in seconds and inclusive.",
    "",
    `- Relay latency and report time of the deshredder: ${boundsText(fineBounds.bounds)}.`,
    `- Lead time of sources: ${boundsText(coarseBounds.bounds)}.`,
    `- All other histograms: ${boundsText(durationBounds)}.`,
    "",
    "The bounds of the data plane are one nanosecond below powers of two. Its own buckets have edges there, " +
      "so every count is exact.",
  );
  return lines.join("\n");
}
