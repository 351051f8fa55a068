// docs/metrics.md names exactly the existing metrics.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { describeMetrics } from "../../../src/platform/metrics/document.ts";
import { metricParts } from "../../../src/platform/metrics/list.ts";
import { deshredMetricNames } from "../../../src/platform/metrics/relay-list.ts";
import { deshredCounterNames } from "../../../src/relay/data-plane/names.ts";

const path = fileURLToPath(new URL("../../../docs/metrics.md", import.meta.url));
const [begin, end] = ["<!-- the list begins -->", "<!-- the list ends -->"];
const all = metricParts.flatMap(({ metrics }) => metrics);

describe("docs/metrics.md", () => {
  it("has the list of src/platform/metrics (vitest -u writes it)", async () => {
    const text = readFileSync(path, "utf8");
    const [head, rest = ""] = text.split(begin);
    const tail = rest.split(end)[1];
    expect(tail).toBeDefined();
    const current = `${head}${begin}\n\n${describeMetrics()}\n\n${end}${tail}`;
    await expect(current).toMatchFileSnapshot(path);
  });
});

describe("the list of metrics", () => {
  it("contains every name once, with names, labels and help texts valid for Prometheus", () => {
    const names = all.flatMap(({ name, formerName = [] }) => [name].concat(formerName));
    expect(new Set(names).size).toBe(names.length);
    for (const { name, type, labels, help } of all) {
      expect(name).toMatch(/^(shredway|process|nodejs)_[a-z0-9_]+$/);
      expect([name, name.endsWith("_total")]).toEqual([name, type === "counter"]);
      expect(name).not.toMatch(/_(ms|us|ns|milliseconds|kb|mb|count|sum|bucket)(_total)?$/);
      for (const label of labels) expect(label).toMatch(/^[a-z_][a-z0-9_]*$/);
      expect(labels).not.toContain("le");
      expect(help).toMatch(/^[A-Z0-9].*\.$/);
    }
  });

  it("has every counter of the deshredder", () => {
    expect(deshredMetricNames.toSorted()).toEqual([...deshredCounterNames].toSorted());
  });
});
