// The tables of docs/metrics.md, written from the list of metrics.
//
// Called by the test that keeps the document current. Pure.

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
    for (const { name, type, labels, help } of metrics) {
      const labelCell = labels.map((label) => `\`${label}\``).join(", ");
      lines.push(
        `| \`${name}\` | ${type} | ${unitOf(name) ?? ""} | ${labelCell} | ${cell(help)} |`,
      );
    }
    lines.push("");
  }
  lines.push(
    "### Bounds of the histograms",
    "",
    "In seconds, each bound included. Of the relay's latency and the deshredder's reports: " +
      `${boundsText(fineBounds.bounds)}. Of the sources' lead: ${boundsText(coarseBounds.bounds)}. ` +
      `Of all others: ${boundsText(durationBounds)}.`,
    "",
    "The bounds of the data plane are a nanosecond below powers of two: its own buckets have edges there, " +
      "so that every count is exact.",
  );
  return lines.join("\n");
}
