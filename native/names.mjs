// Generates src/relay/data-plane/names.ts from the named lists in native/.
//
// The C++ lists are the only ones; TypeScript needs their names as types. test/relay/data-plane/
// names.test.ts compares the file with generateNames(); `npx vitest run -u` rewrites it.

import { readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "..");

/** `type`: absent if TypeScript needs the values only. */
const lists = [
  {
    header: "native/shred/verdict.h",
    macro: "SHREDWAY_STATIC_VERDICTS",
    constant: "shredRefusalReasons",
    type: "ShredRefusalReason",
    meaning: "Verdicts of check_packet: the rules that need only the packet.",
  },
  {
    header: "native/shred/verdict.h",
    macro: "SHREDWAY_VERDICTS",
    constant: "verdictNames",
    type: "VerdictName",
    meaning: "The verdict of every packet.",
  },
  {
    header: "native/net/udp_batch.h",
    macro: "SHREDWAY_SEND_FAILURES",
    constant: "sendFailureNames",
    type: "SendFailureName",
    meaning: "Why a message to a destination failed.",
  },
  {
    header: "native/clone/next_hops.h",
    macro: "SHREDWAY_NEXT_HOP_STATES",
    constant: "nextHopStateNames",
    type: "NextHopStateName",
    meaning: 'Why a destination is sent to by socket where clones are in use; "resolved": cloned.',
  },
  {
    header: "native/relay/counters.h",
    macro: "SHREDWAY_WORKER_COUNTERS",
    constant: "workerCounterNames",
    type: "WorkerCounterName",
    meaning: "Counters of a worker.",
  },
  {
    header: "native/relay/deshred_thread.h",
    macro: "SHREDWAY_DESHRED_COUNTERS",
    constant: "deshredCounterNames",
    type: "DeshredCounterName",
    meaning: "Counters of the deshred thread.",
  },
  {
    header: "native/relay/event_ring.h",
    macro: "SHREDWAY_EVENTS",
    constant: "eventNames",
    type: "EventName",
    meaning: "Kinds of events of the workers.",
  },
  {
    header: "native/stream/stream_ring.h",
    macro: "SHREDWAY_STREAM_MESSAGES",
    constant: "streamMessageNames",
    type: "StreamMessageName",
    meaning: "Kinds of messages of decoded streams.",
  },
  {
    header: "native/transaction/refusal.h",
    macro: "SHREDWAY_TRANSACTION_REFUSALS",
    constant: "transactionRefusalNames",
    meaning: 'Why bytes are not a valid transaction; "accepted": they are.',
  },
  {
    header: "native/transaction/co_signing.h",
    macro: "SHREDWAY_CO_SIGNING_REFUSALS",
    constant: "coSigningRefusalNames",
    meaning: 'Why the nonce authority may not sign a transaction; "accepted": it may.',
  },
];

/** Headers with lists that other lists include. */
const included = ["native/deshred/deshredder.h"];
const headers = [...new Set([...lists.map(({ header }) => header), ...included])];
const text = headers.map((header) => readFileSync(join(root, header), "utf8")).join("\n");

/** The definition of a macro, without comments and line continuations. */
function definitionOf(macro) {
  const begin = text.indexOf(`#define ${macro}(X)`);
  if (begin < 0) throw new Error(`expected a definition of ${macro} in ${headers.join(", ")}`);
  const lines = text.slice(begin).split("\n");
  const end = lines.findIndex((line) => !line.endsWith("\\"));
  return lines
    .slice(0, end + 1)
    .map((line) => line.replace(/\\$/, ""))
    .join("\n")
    .replace(`#define ${macro}(X)`, "")
    .replace(/\/\*.*?\*\//gs, "");
}

/**
 * Entries of a list as [name, text of the other columns]. A list inside it is one entry with its constant,
 * if `constantOf` knows one, else its entries.
 */
function entriesOf(macro, constantOf = () => undefined) {
  const entries = [];
  for (const match of definitionOf(macro).matchAll(/(\w+)\((\w+)([^()"]*(?:"[^"]*"[^()"]*)*)\)/g)) {
    const constant = constantOf(match[1]);
    if (match[1] === "X") entries.push([match[2], match[3]]);
    else if (constant) entries.push(["", "", constant]);
    else entries.push(...entriesOf(match[1]));
  }
  return entries;
}

/** Elements of a list's array: names, and the arrays of lists inside it. */
function elementsOf(macro) {
  return entriesOf(macro, (inner) => lists.find((list) => list.macro === inner)?.constant).map(
    ([name, , constant]) => (constant ? `...${constant}` : `"${name}"`),
  );
}

/** As the formatter writes it: on one line if it fits. */
function arrayText(declaration, quoted, end) {
  const line = `${declaration} = [${quoted.join(", ")}]${end}`;
  if (line.length <= 100) return line;
  return [`${declaration} = [`, ...quoted.map((name) => `  ${name},`), `]${end}`].join("\n");
}

export function generateNames() {
  const parts = lists.map(({ header, macro, constant, type, meaning }) => {
    const elements = elementsOf(macro);
    if (elements.length === 0) throw new Error(`${header}: expected entries in ${macro}`);
    const array = arrayText(`export const ${constant}`, elements, " as const;");
    const alias = type ? `\nexport type ${type} = (typeof ${constant})[number];` : "";
    return `/** ${meaning} Source: ${header}. */\n${array}${alias}\n`;
  });
  const passedOn = entriesOf("SHREDWAY_VERDICTS")
    .filter(([, columns]) => columns.startsWith(", true,"))
    .map(([name]) => `"${name}"`);
  const declaration = "export const passedOnVerdicts: readonly VerdictName[]";
  return [
    "// Names of what the data plane counts or refuses, in the order of its counters.\n//",
    "// Generated by native/names.mjs from the lists in native/; `npx vitest run -u` rewrites it. Loading the",
    "// addon fails if it was built from other lists (native.ts).\n",
    ...parts,
    `/** Verdicts of packets that are sent to at least one tier. */\n${arrayText(declaration, passedOn, ";")}\n`,
  ].join("\n");
}
