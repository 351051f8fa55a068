// Editing of a configuration file's text: sources put in and taken out, comments and order kept.
//
// Called by cli/sources.ts. What comes out is checked as a whole file is: nothing that the service would
// refuse leaves here. Writes nothing.

import { isMap, isSeq, parseDocument, type YAMLSeq } from "yaml";
import { quote, ShredwayError } from "../errors.ts";
import { parseConfig } from "./configuration.ts";

export interface WrittenSource {
  readonly name: string;
  readonly address?: string;
  readonly port?: number;
  readonly tier: string;
}

/** Lines are not folded: what stood in one stays in one. */
const layout = { lineWidth: 0, flowCollectionPadding: true } as const;

function invalid(path: string, message: string): ShredwayError {
  return new ShredwayError("config_invalid", `${path}: ${message}`);
}

/** Throws "config_invalid" before and after `change` alike. */
function edited(text: string, path: string, change: (sources: YAMLSeq) => void): string {
  parseConfig(text, path);
  const document = parseDocument(text);
  const relay = document.get("relay");
  if (!isMap(relay)) throw invalid(path, "relay: expected a mapping");
  if (!relay.has("sources")) relay.set("sources", document.createNode([]));
  const sources = relay.get("sources");
  // An alias or an anchor stands for another place of the file, which is not ours to change.
  if (!isSeq(sources))
    throw invalid(path, "relay.sources: expected a list that stands there itself");
  change(sources);
  const result = document.toString(layout);
  parseConfig(result, path);
  return result;
}

/** The text with one more source at the end of relay.sources. Throws ShredwayError "config_invalid". */
export function withSource(text: string, path: string, source: WrittenSource): string {
  return edited(text, path, (sources) => {
    const node = parseDocument(JSON.stringify(source)).contents;
    if (isMap(node)) node.flow = true;
    sources.add(node);
  });
}

/** The text without the source of that name. Throws ShredwayError "config_invalid". */
export function withoutSource(text: string, path: string, name: string): string {
  return edited(text, path, (sources) => {
    const at = sources.items.findIndex((item) => isMap(item) && item.get("name") === name);
    if (at < 0) {
      const known = sources.items.map((item) => (isMap(item) ? String(item.get("name")) : "?"));
      const expected = known.length > 0 ? `one of ${known.join(", ")}` : "a source, there is none";
      throw new ShredwayError("value_invalid", `source: expected ${expected}, got ${quote(name)}`);
    }
    sources.delete(at);
  });
}
