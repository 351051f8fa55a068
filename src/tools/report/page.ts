// Parts of self-contained HTML pages without scripts. Pure.

import { escapeText } from "./svg.ts";

const style = `
  :root { color-scheme: light dark }
  body { font: 15px/1.5 system-ui, -apple-system, "Segoe UI", sans-serif; max-width: 1000px; margin: 2em auto; padding: 0 1em }
  table { border-collapse: collapse; margin: .5em 0 1.5em; font-variant-numeric: tabular-nums }
  th, td { padding: .25em .7em; text-align: right; border-bottom: 1px solid #8886; white-space: nowrap }
  th:first-child, td:first-child { text-align: left }
  .warn { font-weight: 600 } .scroll { overflow-x: auto } svg { max-width: 100%; height: auto }`;

/** A titled table. */
export function section(
  title: string,
  heads: readonly string[],
  rows: readonly (readonly string[])[],
): string {
  const cells = (tag: string, row: readonly string[]) =>
    `<tr>${row.map((cell) => `<${tag}>${escapeText(cell)}</${tag}>`).join("")}</tr>`;
  const body = rows.map((row) => cells("td", row)).join("\n");
  return `<h2>${escapeText(title)}</h2>\n<div class="scroll"><table><thead>${cells("th", heads)}</thead>\n<tbody>${body}</tbody></table></div>`;
}

interface ReportPage {
  /** Title of the window. */
  readonly title: string;
  readonly heading: string;
  /** One sentence per line. */
  readonly verdict: readonly string[];
  /** Pictures, tables and paragraphs in HTML. */
  readonly body: readonly string[];
}

export function reportPage({ title, heading, verdict, body }: ReportPage): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeText(title)}</title>
<style>${style}</style>
</head>
<body>
<h1>${escapeText(heading)}</h1>
<ul>
${verdict.map((sentence) => `<li>${escapeText(sentence)}</li>`).join("\n")}
</ul>
${body.join("\n")}
</body>
</html>
`;
}
