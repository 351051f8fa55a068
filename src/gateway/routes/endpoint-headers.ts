// Headers of all requests to one partner endpoint.

import { basicAuthorization } from "../../core/configuration/url-secrets.ts";

/** Alternating names and values; configured headers take precedence. */
export function headersOf(
  url: URL,
  headers: Readonly<Record<string, string>>,
  contentType: string,
): string[] {
  const basic = basicAuthorization(url);
  const all = new Map([["content-type", contentType]]);
  if (basic !== null) all.set("authorization", basic);
  for (const [name, value] of Object.entries(headers)) all.set(name.toLowerCase(), value);
  return [...all].flat();
}
