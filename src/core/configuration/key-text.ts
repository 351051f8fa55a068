// Names of keys in messages.

/** A key as messages name it, with the positions in lists: http.split[0].listen. */
export function keyText(path: readonly PropertyKey[]): string {
  let text = "";
  for (const part of path) {
    if (typeof part === "number") text += `[${part}]`;
    else text += text === "" ? String(part) : `.${String(part)}`;
  }
  return text;
}
