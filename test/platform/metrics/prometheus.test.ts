// The real Prometheus scrapes a real service: /metrics is valid in both formats, and every expression of
// the dashboard and of the alerts has a result.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { metricParts } from "../../../src/platform/metrics/list.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { until } from "../../support/network/udp-receiver.ts";
import {
  exampleFile,
  hasPrometheus,
  Prometheus,
  promtool,
} from "../../support/processes/prometheus.ts";
import { runningSandbox } from "../../support/processes/sandbox.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

interface Panel {
  readonly id: number;
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly gridPos: {
    readonly x: number;
    readonly y: number;
    readonly w: number;
    readonly h: number;
  };
  readonly fieldConfig?: { readonly defaults: { readonly unit?: string } };
  readonly datasource?: { readonly uid: string };
  readonly targets?: readonly { readonly refId: string; readonly expr: string }[];
}

interface Dashboard {
  readonly uid: string;
  readonly schemaVersion: number;
  readonly templating: {
    readonly list: readonly { readonly name: string; readonly type: string }[];
  };
  readonly panels: readonly Panel[];
}

const dashboard: Dashboard = JSON.parse(readFileSync(exampleFile("grafana/shredway.json"), "utf8"));
const graphs = dashboard.panels.filter(({ type }) => type !== "row");
const expressions = graphs.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr }): [string, string] => [title, expr]),
);

/** Replaces variables like Grafana. */
function filled(expression: string, instance: string): string {
  return expression
    .replaceAll("$job", "shredway")
    .replaceAll("$instance", instance)
    .replaceAll("$__rate_interval", "10s");
}

/** The example with the sandbox as its only node, and a scrape every half second. */
function configurationFor(address: string): string {
  const folder = temporaryFolder();
  const text = readFileSync(exampleFile("prometheus/prometheus.yml"), "utf8");
  const file = join(folder, "prometheus.yml");
  const changed = text
    .replace("127.0.0.1:8780", address)
    .replaceAll("_interval: 10s", "_interval: 500ms");
  writeFileSync(file, changed);
  writeFileSync(join(folder, "alerts.yml"), readFileSync(exampleFile("prometheus/alerts.yml")));
  return file;
}

async function ask(sandbox: Sandbox, body: string): Promise<void> {
  await (await fetch(sandbox.gatewayUrl, { method: "POST", body })).text();
}

async function makeTraffic(sandbox: Sandbox, base: string): Promise<void> {
  await ask(sandbox, '{"jsonrpc":"2.0","id":1,"method":"getTipAccounts"}');
  await ask(sandbox, '{"jsonrpc":"2.0","id":1,"method":"noSuchMethod"}');
  await ask(sandbox, "[");
  for (const path of ["/tip_floor", "/api/alt_validators", "/nowhere", "/gethealth"]) {
    await (await fetch(base + path)).text();
  }
}

describe("the dashboard", () => {
  it("has unique ids, separate positions, units and one data source", () => {
    const ids = dashboard.panels.map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
    expect(dashboard.templating.list.map(({ name, type }) => [name, type])).toEqual([
      ["datasource", "datasource"],
      ["job", "query"],
      ["instance", "query"],
    ]);
    const taken = new Set<string>();
    for (const {
      gridPos,
      type,
      title,
      description,
      fieldConfig,
      datasource,
      targets,
    } of dashboard.panels) {
      expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
      for (let x = gridPos.x; x < gridPos.x + gridPos.w; x++) {
        for (let y = gridPos.y; y < gridPos.y + gridPos.h; y++) {
          expect([title, taken.has(`${x},${y}`)]).toEqual([title, false]);
          taken.add(`${x},${y}`);
        }
      }
      if (type === "row") continue;
      expect([title, fieldConfig?.defaults.unit]).toEqual([title, expect.stringMatching(/^\w+$/)]);
      expect(datasource?.uid).toMatch(/^\$\{datasource\}$/);
      expect(description).toMatch(/\.$/);
      const refs = targets?.map(({ refId }) => refId) ?? [];
      expect(new Set(refs).size).toBe(refs.length);
      expect(refs.length).toBeGreaterThan(0);
    }
  });

  it("queries existing metrics, only of the selected nodes", () => {
    const known = new Set(metricParts.flatMap(({ metrics }) => metrics.map(({ name }) => name)));
    for (const [title, expr] of expressions) {
      for (const [, name = "", selector] of expr.matchAll(
        /\b((?:shredway|nodejs|process)_\w+)(\{[^}]*\})?/g,
      )) {
        const base = name.replace(/_(bucket|sum|count)$/, "");
        expect([title, name, known.has(name) || known.has(base)]).toEqual([title, name, true]);
        expect([title, selector]).toEqual([
          title,
          expect.stringContaining('job="$job", instance=~"$instance"'),
        ]);
      }
    }
  });
});

describe.skipIf(!hasPrometheus)("Prometheus", () => {
  it("scrapes a running service, and answers every panel and every alert", async () => {
    const sandbox = await runningSandbox();
    const address = sandbox.gateway.addresses[0] ?? "";
    const base = `http://${address}`;
    await makeTraffic(sandbox, base);
    const prometheus = await Prometheus.start(configurationFor(address));
    // Panels on slots and outcomes need some blocks and a landed transaction.
    const ends = () => sandbox.gateway.snapshot().submissions.ends;
    await until(() => sandbox.snapshot().chain.blockHeight > 6n, "six blocks");
    await until(() => ends().landed > 0n, "a landed submission");
    await until(() => sandbox.snapshot().slotNs !== null, "the slot clock");
    await makeTraffic(sandbox, base);
    const hasScraped = async () => {
      const [up] = await prometheus.query('count_over_time(up{job="shredway"}[5s])');
      const [rate] = await prometheus.query("shredway_relay_settled_slot_ratio");
      return Number(up?.value[1] ?? 0) >= 6 && rate !== undefined;
    };
    await prometheus.until(hasScraped, "six scrapes");
    const [up] = await prometheus.query('up{job="shredway"}');
    expect(up?.value[1]).toBe("1");

    const empty: string[] = [];
    for (const [title, expr] of expressions) {
      const series = await prometheus.query(filled(expr, address));
      if (series.length === 0) empty.push(`${title}: ${expr}`);
    }
    expect(empty).toEqual([]);

    const loaded = await prometheus.rules();
    expect(loaded.length).toBeGreaterThan(20);
    await prometheus.until(
      async () => (await prometheus.rules()).every(({ health }) => health !== "unknown"),
      "every rule was evaluated",
    );
    for (const rule of await prometheus.rules()) {
      expect(rule).toMatchObject({ name: rule.name, health: "ok" });
    }
    // Verifies this test: an invalid expression is an error, not an empty result.
    await expect(prometheus.query("rate(shredway_slot)")).rejects.toThrow(
      "expected type range vector",
    );

    for (const accept of ["text/plain;version=0.0.4", "application/openmetrics-text"]) {
      const response = await fetch(`${base}/metrics`, { headers: { accept } });
      const text = await response.text();
      expect(response.headers.get("content-type")).toContain(accept.split(";")[0]);
      if (accept.startsWith("text")) {
        expect(await promtool(["check", "metrics"], text)).toEqual({ isContent: true, text: "" });
      } else {
        expect(text.endsWith("\n# EOF\n")).toBe(true);
      }
    }
  });
});
