import { describe, expect, it } from "vitest";
import { DurationHistogram } from "../../../src/core/duration-histogram.ts";
import { Exposition, type Format, formatFor } from "../../../src/platform/metrics/exposition.ts";
import {
  counter,
  counters,
  gauge,
  histogram,
  type Metric,
  renamed,
} from "../../../src/platform/metrics/types.ts";

const metrics: readonly Metric<null>[] = [
  counter("a_seconds_total", 'Time of "a", back\\slash.', () => 1.5),
  counters("b_total", ["name", "way"], "B.", (_, add) => {
    add(["x", "out"], 2n ** 64n - 1n);
    add(['quo"te\\ and\nline', "é"], 0);
  }),
  gauge("c", "C.", () => Number.NaN),
  gauge("nothing", "Not known.", () => null),
  histogram("d_seconds", "D.", () => {
    const durations = new DurationHistogram([0.5, 1, 2]);
    for (const seconds of [0.5, 0.7, 1, 9, -1]) durations.add(seconds);
    return durations.value();
  }),
];

function written(format: Format): string {
  const exposition = new Exposition(format);
  exposition.add(metrics, null);
  return exposition.text();
}

const samples = `b_total{name="x",way="out"} 18446744073709551615
b_total{name="quo\\"te\\\\ and\\nline",way="é"} 0
`;
const buckets = `d_seconds_bucket{le="0.5"} 2
d_seconds_bucket{le="1.0"} 4
d_seconds_bucket{le="2.0"} 4
d_seconds_bucket{le="+Inf"} 5
d_seconds_sum 11.2
d_seconds_count 5
`;

describe("the exposition", () => {
  it("writes a renamed metric under both names, and a text that names the new one", () => {
    const exposition = new Exposition("text");
    exposition.add(
      [
        renamed(
          "old_total",
          counter("new_total", "N.", () => 7n),
        ),
      ],
      null,
    );
    expect(exposition.text()).toBe(`# HELP new_total N.
# TYPE new_total counter
new_total 7
# HELP old_total Deprecated: use new_total. The next release removes this name.
# TYPE old_total counter
old_total 7
`);
  });

  it("is the text format 0.0.4", () => {
    expect(written("text")).toBe(`# HELP a_seconds_total Time of "a", back\\\\slash.
# TYPE a_seconds_total counter
a_seconds_total 1.5
# HELP b_total B.
# TYPE b_total counter
${samples}# HELP c C.
# TYPE c gauge
c NaN
# HELP d_seconds D.
# TYPE d_seconds histogram
${buckets}`);
  });

  it("is OpenMetrics 1.0", () => {
    expect(written("openmetrics")).toBe(`# HELP a_seconds Time of \\"a\\", back\\\\slash.
# TYPE a_seconds counter
# UNIT a_seconds seconds
a_seconds_total 1.5
# HELP b B.
# TYPE b counter
${samples}# HELP c C.
# TYPE c gauge
c NaN
# HELP d_seconds D.
# TYPE d_seconds histogram
# UNIT d_seconds seconds
${buckets}# EOF
`);
  });

  it.each([
    [undefined, "text"],
    ["", "text"],
    ["*/*", "text"],
    ["text/html, */*;q=0.1", "text"],
    ["application/openmetrics-text", "openmetrics"],
    [
      "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
      "openmetrics",
    ],
    ["application/openmetrics-text; version=1.0.0; charset=utf-8; q=0.2, text/plain", "text"],
    ["application/openmetrics-text;q=0", "text"],
    ["application/openmetrics-text;version=2.0.0", "text"],
    ["application/openmetrics-text;q=wrong", "text"],
  ] as const)("answers Accept: %s with %s", (accept, format) => {
    expect(formatFor(accept)).toBe(format);
  });
});
