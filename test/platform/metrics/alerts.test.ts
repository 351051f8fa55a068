// Every alert of examples/production/prometheus/alerts.yml, checked by promtool: it fires after its
// duration, not earlier, and no other alert fires.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse, stringify } from "yaml";
import { exampleFile, hasPrometheus, promtool } from "../../support/processes/prometheus.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";
import { type AlertCase, alertCases, wellSeries } from "./alert-cases.ts";

const rulesFile = exampleFile("prometheus/alerts.yml");

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly for: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}

const { groups }: { groups: { name: string; rules: Rule[] }[] } = parse(
  readFileSync(rulesFile, "utf8"),
);
const rules = groups.flatMap((group) => group.rules);

/** The service of one case, with its own instance name. */
function seriesOf({ bad }: Pick<AlertCase, "bad">, instance: string) {
  const replaced = new Set<string>();
  const series = Object.entries(wellSeries).map(([name, well]) => {
    const beginning = Object.keys(bad).find((text) => name.startsWith(text));
    if (beginning !== undefined) replaced.add(beginning);
    const values = (beginning !== undefined && bad[beginning]) || well;
    return { series: name.replace('instance="a"', `instance="${instance}"`), values };
  });
  expect([...replaced].toSorted()).toEqual(Object.keys(bad).toSorted());
  return series;
}

/** Alerts that fire at `at`, by instance. */
function firing(at: string, alerts: readonly (readonly [alert: string, instance: string])[]) {
  return {
    expr: 'max by (alertname, instance) (ALERTS{alertstate="firing"})',
    eval_time: at,
    exp_samples: alerts.map(([alert, instance]) => ({
      labels:
        instance === ""
          ? `{alertname="${alert}"}`
          : `{alertname="${alert}", instance="${instance}"}`,
      value: 1,
    })),
  };
}

const isTierLeaderSeries = (name: string) => /^shredway_(tier_leader|store_info)/.test(name);

async function check(tests: readonly object[]) {
  const file = join(temporaryFolder(), "alerts-test.yml");
  const text = { rule_files: [rulesFile], evaluation_interval: "10s", tests };
  writeFileSync(file, stringify(text, { lineWidth: 0 }));
  return promtool(["test", "rules", file]);
}

describe("alerts.yml", () => {
  it("has duration, severity, summary and remedy for each alert", () => {
    const document = readFileSync(
      new URL("../../../docs/metrics.md", import.meta.url),
      "utf8",
    ).split("\n## Alerts\n")[1];
    expect(new Set(rules.map(({ alert }) => alert)).size).toBe(rules.length);
    for (const { alert, labels, annotations, ...rule } of rules) {
      expect(rule.for).toMatch(/^\d+[sm]$/);
      expect(labels.severity).toMatch(/^(critical|warning)$/);
      expect(Object.keys(annotations)).toEqual(["summary", "description", "runbook"]);
      const section = /^docs\/metrics\.md#([a-z]+)$/.exec(annotations["runbook"] ?? "")?.[1] ?? "";
      const body = document
        ?.split("\n### ")
        .find((text) => text.split("\n")[0]?.toLowerCase() === section);
      expect(body).toContain(`**${alert}**`);
    }
  });

  it("has a case for each alert", () => {
    const tried = new Set(alertCases.map(({ alert }) => alert));
    expect([...tried].toSorted()).toEqual(rules.map(({ alert }) => alert).toSorted());
  });

  it.skipIf(!hasPrometheus)("loads (promtool)", async () => {
    const found = await promtool(["check", "rules", "--lint-fatal", rulesFile]);
    expect(found).toMatchObject({ isContent: true });
    const config = await promtool(["check", "config", exampleFile("prometheus/prometheus.yml")]);
    expect(config).toMatchObject({ isContent: true });
  });

  it.skipIf(!hasPrometheus)("fires when it should, and only then (promtool)", async () => {
    const interval = "10s";
    const ofService = alertCases.filter(({ alert }) => alert !== "ShredwayNoTierLeader");
    const input = ofService.flatMap((one, i) => seriesOf(one, `${i}`));
    const expected = ofService.flatMap(({ alert, also = [] }, i) =>
      [alert, ...also].map((name): [string, string] => [name, `${i}`]),
    );
    const all = {
      interval,
      input_series: [...input, ...seriesOf({ bad: {} }, "well")].filter(
        ({ series }) => !isTierLeaderSeries(series),
      ),
      promql_expr_test: [firing("20s", []), firing("25m", expected)],
    };
    const tierLeaderTest = (bad: AlertCase["bad"], isBad: boolean) => ({
      interval,
      input_series: seriesOf({ bad }, "a").filter(({ series }) => isTierLeaderSeries(series)),
      promql_expr_test: [
        firing("4m", []),
        firing("10m", isBad ? [["ShredwayNoTierLeader", ""]] : []),
      ],
    });
    const tierLeaderTests = alertCases
      .filter(({ alert }) => alert === "ShredwayNoTierLeader")
      .map(({ bad }) => tierLeaderTest(bad, true));
    const found = await check([all, ...tierLeaderTests, tierLeaderTest({}, false)]);
    expect(found.text).toMatch(/SUCCESS/);
    expect(found.isContent).toBe(true);
    // Verifies this test: it detects an alert that does not fire.
    const wrong = {
      ...tierLeaderTest({}, false),
      promql_expr_test: [firing("10m", [["ShredwayNoTierLeader", ""]])],
    };
    expect((await check([wrong])).isContent).toBe(false);
  });
});
