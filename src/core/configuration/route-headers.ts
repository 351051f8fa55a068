// Headers that a configuration may add to a route's requests.
//
// Checked with the configuration, so that a reload refuses them before it changes anything, and again
// where a route is opened.

/** These headers describe the length of a request and the use of its connection; routes set them. */
const framing =
  /^(connection|content-length|expect|host|keep-alive|te|trailer|transfer-encoding|upgrade)$/i;

/** "expected …, got …" for headers that no request may have; null: they are fine. */
export function routeHeadersProblem(headers: Readonly<Record<string, string>>): string | null {
  for (const [name, value] of Object.entries(headers)) {
    if (framing.test(name)) return `expected headers that do not frame the request, got ${name}`;
    // Not quoted: it may be a key.
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      return `expected printable characters in the header ${name}, got others`;
    }
  }
  return null;
}
