// Edits the text of a configuration file: adds and removes sources, and preserves comments and
// order.
//
// Called by tools/commands/sources.ts. The result is checked like a whole file, so that it is
// always a valid configuration. It writes no file.

import { type Document, isMap, isSeq, parseDocument, type YAMLSeq } from "yaml";
import { quote, ShredwayError } from "../errors.ts";
import { parseConfig } from "./configuration.ts";

export interface WrittenSource {
  readonly name: string;
  readonly kind?: "multicast";
  readonly groups?: readonly string[];
  readonly interface?: string;
  readonly address?: string;
  readonly port?: number;
  readonly tier: string;
  readonly forward?: boolean;
}

/** Long lines are not folded, so that unchanged lines stay unchanged. */
const layout = { lineWidth: 0, flowCollectionPadding: true } as const;

function invalid(path: string, message: string): ShredwayError {
  return new ShredwayError("config_invalid", `${path}: ${message}`);
}

/** Throws "config_invalid" if the text is invalid before or after `change`. */
function edited(
  text: string,
  path: string,
  change: (sources: YAMLSeq, document: Document) => void,
): string {
  parseConfig(text, path);
  const document = parseDocument(text);
  const relay = document.get("relay");
  if (!isMap(relay)) throw invalid(path, "relay: expected a mapping");
  if (!relay.has("sources")) relay.set("sources", document.createNode([]));
  const sources = relay.get("sources");
  // An alias or an anchor refers to another part of the file, which this program must not change.
  if (!isSeq(sources))
    throw invalid(
      path,
      "relay.sources: an alias or a list with an anchor cannot be changed; write the list in place",
    );
  change(sources, document);
  const result = document.toString(layout);
  parseConfig(result, path);
  return result;
}

/**
 * Returns the text with a further source at the end of relay.sources. Throws ShredwayError
 * "config_invalid".
 */
export function withSource(text: string, path: string, source: WrittenSource): string {
  return edited(text, path, (sources, document) => {
    const node = document.createNode({ ...source });
    // On one line, unless every other source is on several.
    const isBlock = (item: unknown) => isMap(item) && item.flow !== true;
    const isBlockList = sources.items.length > 0 && sources.items.every(isBlock);
    if (isMap(node)) node.flow = !isBlockList;
    sources.add(node);
  });
}

/** Returns the text without the named source. Throws ShredwayError "config_invalid". */
export function withoutSource(text: string, path: string, name: string): string {
  return edited(text, path, (sources) => {
    const at = sources.items.findIndex((item) => isMap(item) && item.get("name") === name);
    if (at < 0) {
      const known = sources.items.map((item) => (isMap(item) ? String(item.get("name")) : "?"));
      const expected =
        known.length > 0 ? `one of ${known.join(", ")}` : "a source, but no source is configured";
      throw new ShredwayError(
        "value_invalid",
        `source: unknown name ${quote(name)}; expected ${expected}`,
      );
    }
    sources.delete(at);
  });
}
