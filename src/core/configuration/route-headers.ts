// Headers that a configuration may add to a route's requests.
//
// Checked with the configuration, so that a reload rejects them before it changes anything, and
// again when a route is opened.

/** These headers describe the length of a request and the use of its connection; routes set them. */
const framing =
  /^(connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/i;

/** Returns "expected …, got …" for an invalid header; null: all headers are valid. */
export function routeHeadersProblem(headers: Readonly<Record<string, string>>): string | null {
  for (const [name, value] of Object.entries(headers)) {
    if (framing.test(name)) return `expected headers that do not frame the request, got ${name}`;
    // The value is not quoted, because it may be a key.
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      return `expected printable characters in the value of the header ${name}, got other characters`;
    }
  }
  return null;
}
