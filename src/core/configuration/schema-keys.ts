// Building blocks of the configuration schema.
//
// Used by the files of the sections, which schema.ts combines. Every key carries its texts for
// errors and for docs/configuration.md.

import { z } from "zod";
import { parseEndpoint } from "../addresses/addresses.ts";
import { messageOf, ShredwayError } from "../errors.ts";
import { postgresHosts } from "./postgres-url.ts";

/** Texts about a key for errors and the documentation. */
interface KeyDocument {
  /** Completes the sentence "expected …". */
  readonly expects: string;
  /** The same for one entry of a mapping with free names; undefined: like the mapping. */
  readonly entryExpects?: string;
  readonly meaning: string;
  readonly unit?: string;
  /** Effect if the key is absent and has no default value. */
  readonly absent?: string;
}

export const keyDocuments = z.registry<KeyDocument>();

const namePattern = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** A string that `parse` accepts. The error that `parse` throws becomes the error of the key. */
export function parsed(parse: (text: string) => unknown) {
  return z.string().superRefine((text, context) => {
    try {
      parse(text);
    } catch (error) {
      context.addIssue({ code: "custom", message: messageOf(error) });
    }
  });
}

function parseUrl(text: string, [scheme, secureScheme]: readonly [string, string]): void {
  const expected = `expected a URL of ${scheme} or ${secureScheme}, such as ${secureScheme}://HOST/PATH`;
  const given = /^([a-z][a-z0-9+.-]{0,15}):\/\//i.exec(text)?.[1]?.toLowerCase();
  // The text is not quoted, because it may contain a key.
  let wrong = "invalid URL";
  if (given === undefined) wrong = "URL without scheme";
  else if (given !== scheme && given !== secureScheme) wrong = `URL of ${given}`;
  else if (URL.canParse(text)) return;
  throw new ShredwayError("config_invalid", `${wrong}; ${expected}`);
}

export function parseHttpUrl(text: string): void {
  parseUrl(text, ["http", "https"]);
}

/** A URL that is published, so it must not contain credentials. */
export function parseOpenHttpUrl(text: string): void {
  parseHttpUrl(text);
  const { username, password } = new URL(text);
  if (username === "" && password === "") return;
  throw new ShredwayError("config_invalid", "expected a URL without user and password, got one");
}

export function parseWebSocketUrl(text: string): void {
  parseUrl(text, ["ws", "wss"]);
}

/** Accepts one server or several. */
export function parsePostgresUrl(text: string): void {
  postgresHosts(text);
}

export const parseEndpointOrPortZero = (text: string) =>
  parseEndpoint(text, { allowPortZero: true });

export function integer(min: number, max: number) {
  return z.int().min(min).max(max);
}

/** Lamports in a file: whole numbers up to 2^53 - 1, which is far above the total supply. */
export function lamports() {
  return z.int().min(0).max(Number.MAX_SAFE_INTEGER);
}

export function key<T extends z.ZodType>(schema: T, document: KeyDocument): T {
  if (keyDocuments.has(schema)) throw new Error(`one schema for two keys: ${document.meaning}`);
  keyDocuments.add(schema, document);
  return schema;
}

const pemPath = () => z.string().min(1).max(4096);
const pemPathExpects = "a path, relative to the configuration file";

/** The two files of a server's certificate. `reload`: how a change takes effect. */
export function tlsFiles(reload: string) {
  return {
    certificate: key(pemPath(), {
      expects: pemPathExpects,
      meaning: `PEM file of the server's certificate, followed by the intermediate ones (\`fullchain.pem\`). ${reload}`,
    }),
    key: key(pemPath(), {
      expects: pemPathExpects,
      meaning: "PEM file of the private key, without a password (`privkey.pem`).",
    }),
  };
}

// A schema can have one document only, so every key needs an instance of its own.
export const name = () => z.string().regex(namePattern);
export const nameExpects = (what: string) =>
  `a ${what} of 1 to 64 letters, digits, ".", "_" or "-"`;
