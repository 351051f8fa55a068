// Texts in the database: any character, in the same form in PostgreSQL and SQLite.
//
// PostgreSQL does not store the character NUL in texts, and the SQLite package cuts texts at it. It is
// written as two other characters, so each text has one form and comparisons for equality still work.

/** A private-use character of Unicode, so other texts do not contain it by accident. */
const escapeCharacter = "\u{E000}";
const escaped = new Map([
  ["\0", `${escapeCharacter}0`],
  [escapeCharacter, `${escapeCharacter}1`],
]);
const unescaped = new Map([...escaped].map(([plain, form]) => [form, plain]));

/** The form of `text` in the database. */
export function storedText(text: string): string {
  if (!text.includes("\0") && !text.includes(escapeCharacter)) return text;
  return text.replaceAll(/[\0\u{E000}]/gu, (character) => escaped.get(character) ?? "");
}

/** The text whose form in the database is `text`. */
export function plainText(text: string): string {
  if (!text.includes(escapeCharacter)) return text;
  return text.replaceAll(/\u{E000}[01]/gu, (form) => unescaped.get(form) ?? form);
}
