// Exposition: the text format that Prometheus reads, version 0.0.4, or OpenMetrics 1.0 on request.
//
// Called by the page /metrics for each scrape. Names and help texts come from the lists of this folder. Label
// values may be any text, such as names of destinations, and are escaped.

import { type Metric, type MetricValue, unitOf } from "./types.ts";

export type Format = "text" | "openmetrics";

export const contentTypes: Readonly<Record<Format, string>> = {
  text: "text/plain; version=0.0.4; charset=utf-8",
  openmetrics: "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

interface Range {
  readonly type: string;
  readonly version: string | undefined;
  readonly quality: number;
}

function rangesOf(accept: string): Range[] {
  return accept
    .slice(0, 1024)
    .split(",")
    .map((text) => {
      const [type = "", ...rest] = text.split(";").map((part) => part.trim().toLowerCase());
      const parameters = new Map(
        rest.map((part): [string, string] => {
          const [name = "", value = ""] = part.split("=");
          return [name.trim(), value.trim().replaceAll('"', "")];
        }),
      );
      const quality = Number(parameters.get("q") ?? "1");
      return {
        type,
        version: parameters.get("version"),
        quality: quality >= 0 && quality <= 1 ? quality : 0,
      };
    });
}

/** OpenMetrics only if the client accepts version 1.0.0 and does not prefer plain text. */
export function formatFor(accept: string | undefined): Format {
  const ranges = rangesOf(accept ?? "");
  const best = (holds: (range: Range) => boolean): number =>
    Math.max(0, ...ranges.filter(holds).map(({ quality }) => quality));
  const open = best(
    ({ type, version }) =>
      type === "application/openmetrics-text" && (version === undefined || version === "1.0.0"),
  );
  const plain = best(({ type }) => type === "text/plain" || type === "text/*");
  return open > 0 && open >= plain ? "openmetrics" : "text";
}

function numberText(value: MetricValue): string {
  if (typeof value === "bigint") return value.toString();
  if (Number.isNaN(value)) return "NaN";
  if (value === Number.POSITIVE_INFINITY) return "+Inf";
  return value === Number.NEGATIVE_INFINITY ? "-Inf" : String(value);
}

/** The same text in both formats, so that a bound is one series in either of them. */
function boundText(bound: number): string {
  return Number.isInteger(bound) ? `${bound}.0` : String(bound);
}

const mustEscape = /[\\"\n]/;

function escaped(text: string): string {
  if (!mustEscape.test(text)) return text;
  return text.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}

/** `a="1",b="2"`; empty without labels. */
function labelText(names: readonly string[], values: readonly string[]): string {
  let text = "";
  // A plain loop: an iterator for each of thousands of samples would cost more than the text.
  for (let i = 0; i < names.length; i++) {
    text += `${i === 0 ? "" : ","}${names[i]}="${escaped(values[i] ?? "")}"`;
  }
  return text;
}

export class Exposition {
  readonly #format: Format;
  readonly #lines: string[] = [];

  constructor(format: Format) {
    this.#format = format;
  }

  /** Writes each metric that has a value, also under its former name. */
  add<Facts>(metrics: readonly Metric<Facts>[], facts: Facts): void {
    for (const metric of metrics) {
      this.#addOne(metric, facts);
      if (metric.formerName === undefined) continue;
      const help = `Deprecated: use ${metric.name}. The next release removes this name.`;
      this.#addOne({ ...metric, name: metric.formerName, help }, facts);
    }
  }

  /** Call it once, at the end. */
  text(): string {
    if (this.#format === "openmetrics") this.#lines.push("# EOF");
    this.#lines.push("");
    return this.#lines.join("\n");
  }

  #addOne<Facts>(metric: Metric<Facts>, facts: Facts): void {
    const { name, labels } = metric;
    let isBegun = false;
    const begin = (): void => {
      if (!isBegun) this.#describe(metric);
      isBegun = true;
    };
    if (metric.type === "histogram") {
      metric.read(facts, (values, { bounds, cumulative, count, sum }) => {
        begin();
        const own = labelText(labels, values);
        const head = `${name}_bucket{${own}${own === "" ? "" : ","}le="`;
        for (const [i, bound] of bounds.entries()) {
          this.#lines.push(`${head}${boundText(bound)}"} ${numberText(cumulative[i] ?? 0)}`);
        }
        const braces = own === "" ? "" : `{${own}}`;
        this.#lines.push(
          `${head}+Inf"} ${numberText(count)}`,
          `${name}_sum${braces} ${numberText(sum)}`,
          `${name}_count${braces} ${numberText(count)}`,
        );
      });
      return;
    }
    metric.read(facts, (values, value) => {
      begin();
      const own = labelText(labels, values);
      this.#lines.push(`${name}${own === "" ? "" : `{${own}}`} ${numberText(value)}`);
    });
  }

  #describe({ name, type, help }: Metric<never>): void {
    const isOpen = this.#format === "openmetrics";
    const family = isOpen && type === "counter" ? name.replace(/_total$/, "") : name;
    const unit = unitOf(name);
    const text = isOpen ? escaped(help) : help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
    this.#lines.push(`# HELP ${family} ${text}`, `# TYPE ${family} ${type}`);
    if (isOpen && unit !== undefined) this.#lines.push(`# UNIT ${family} ${unit}`);
  }
}
