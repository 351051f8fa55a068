// JSON whose integers are exact: beyond 2^53 they are bigint, in both directions.
//
// Called by transport.ts and socket.ts. JSON.parse alone would round lamports and slots without a word.

/** Only such a text can hold an integer that a number does not. */
const longDigits = /[0-9]{16}/;
/** A string, with the colon behind it when it is a key, or a number. */
const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/g;
const integer = /^-?[0-9]+$/;

/**
 * Long integers pass JSON.parse as strings. Every string has a letter before it on the way, so that none
 * can be taken for an integer, whatever it says.
 */
function marked(text: string): string {
  return text.replaceAll(tokens, (token: string, colon: string | undefined) => {
    if (token.startsWith('"')) return colon === undefined ? `"s${token.slice(1)}` : token;
    return integer.test(token) && !Number.isSafeInteger(Number(token)) ? `"i${token}"` : token;
  });
}

function revive(_key: string, value: unknown): unknown {
  if (typeof value !== "string") return value;
  return value.startsWith("i") ? BigInt(value.slice(1)) : value.slice(1);
}

/** Throws SyntaxError. */
export function readJson(text: string): unknown {
  return longDigits.test(text) ? JSON.parse(marked(text), revive) : JSON.parse(text);
}

/** bigint as integers, absent fields left out. */
export function writeJson(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(writeJson).join(",")}]`;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${writeJson(field)}`).join(",")}}`;
}
