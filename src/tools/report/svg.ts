// Shared parts of pictures: colours, style sheet and text. Pure.

import { formatLag } from "./number-text.ts";

export const feedColours: readonly string[] = [
  "#2f7ed8",
  "#e07b00",
  "#1a9c6b",
  "#c2419b",
  "#8a6dd8",
  "#a98800",
  "#d94040",
  "#3f9c9c",
];

/** Grid lines of a logarithmic axis of lags. */
export const cdfTicksNs: readonly number[] = [1e4, 1e5, 1e6, 1e7, 1e8, 1e9];

/** Style sheet for light and dark pages. */
export const pictureStyle = `
  text { font: 12px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #24292f }
  .title { font-size: 17px; font-weight: 600 }
  .panel { font-size: 13px; font-weight: 600 }
  .soft { fill: #656d76 }
  .warn { fill: #b35900; font-weight: 600 }
  .grid { stroke: #d8dee4; stroke-width: 1 }
  .axis { stroke: #8c959f; stroke-width: 1 }
  .ground { fill: #ffffff }
  .empty { fill: #eaeef2 }
  .whisker { stroke: #24292f; stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .soft { fill: #9198a1 } .warn { fill: #f0a35e }
    .grid { stroke: #30363d } .axis { stroke: #6e7681 } .ground { fill: #0d1117 }
    .empty { fill: #21262d } .whisker { stroke: #e6edf3 }
  }`;

export function escapeText(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

export function round(value: number): string {
  return String(Math.round(value * 10) / 10);
}

export function label(x: number, y: number, text: string, extra = ""): string {
  return `<text x="${round(x)}" y="${round(y)}"${extra}>${escapeText(text)}</text>`;
}

export function tickOf(lagNs: number): string {
  return formatLag(lagNs).replace(/\.0+(?= )/, "");
}

/** Splits the text into lines that fit. */
export function wrapped(text: string, charactersMax: number): string[] {
  const out = [""];
  for (const word of text.split(" ")) {
    const last = out.length - 1;
    const longer = `${out[last]} ${word}`.trim();
    if (longer.length > charactersMax) out.push(word);
    else out[last] = longer;
  }
  return out;
}
