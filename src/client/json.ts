// JSON with exact integers: beyond 2^53 they are bigint, in both directions.
//
// Called by transport.ts and socket.ts. JSON.parse alone would silently round lamports and slots.

/** Only a text that matches this can contain an integer that a number cannot represent. */
const longDigits = /[0-9]{16}/;
/** Matches a string (with the colon, if it is a key) or a number. */
const tokens = /"(?:[^"\\]|\\.)*"(\s*:)?|-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/g;
const integer = /^-?[0-9]+$/;

/**
 * Long integers pass JSON.parse as strings. Meanwhile every string has a letter before it, so that
 * no string can be mistaken for an integer.
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

/** Writes bigints as integers and omits absent fields. */
export function writeJson(value: unknown): string {
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  if (Array.isArray(value)) return `[${value.map(writeJson).join(",")}]`;
  const fields = Object.entries(value).filter(([, field]) => field !== undefined);
  return `{${fields.map(([key, field]) => `${JSON.stringify(key)}:${writeJson(field)}`).join(",")}}`;
}
