// `shredway verify-receipt`: checks receipts with the published keys of a service, or with stored ones.
//
// Uses the typed client, which verifies. It needs no API key, and without --url no network.

import { createPublicKey } from "node:crypto";
import { readFileSync } from "node:fs";
import { text as readAll } from "node:stream/consumers";
import {
  type Receipt,
  ShredwayCallError,
  ShredwayClient,
  type SigningKeys,
  verifyReceipt,
} from "../../client/index.ts";
import { messageOf, quote } from "../../core/errors.ts";
import { isObject } from "../../core/values.ts";
import { type Arguments, type Command, exitCodes, usageError } from "../terminal/command.ts";
import { toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";

const inputBytesMax = 16 * 1024 * 1024;
const keyPattern = /^[\w-]{43}$/;
const keyExpected =
  "an Ed25519 public key: 43 characters of base64url (x of a JWK), a JWK or JWK Set in JSON, or a PEM file";

export const verifyReceiptCommand: Command = {
  name: "verify-receipt",
  summary: "verify signed receipts, and show their content",
  usage: [
    "verify-receipt [RECEIPT …] [--file FILE …] (--url URL | --key KEY | --key-file FILE) [--json]",
  ],
  description: `
Verifies receipts of submissions: that one of the keys signed them, and that nobody changed them. RECEIPT is a JWS
in compact serialization, or - for standard input. A file contains receipts, one on each line. Without a receipt,
standard input is read.

--url fetches the published keys of the service from /.well-known/shredway-keys.json. Store that response, and
pass it to --key-file, to verify receipts without the service.

The exit code is 0 if all receipts are valid, 1 if one is not or the keys could not be fetched, and 2 for wrong
usage.`,
  options: {
    file: { value: "FILE", repeated: true, help: "verify the receipts in this file" },
    url: { value: "URL", help: "URL of the service whose keys are expected" },
    key: { value: "KEY", help: "the expected key: x of its JWK, or a JWK or JWK Set in JSON" },
    "key-file": { value: "FILE", help: "file with a JWK Set, a JWK, or a public key in PEM" },
    json: { help: "print one JSON object for each receipt" },
  },
  positional: "RECEIPT",
  examples: [
    "shredway verify-receipt --file receipt.txt --url https://gateway.example",
    "shredway verify-receipt --file receipt.txt --key-file shredway-keys.json",
    "shredway verify-receipt --key 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo < receipt.txt",
  ],
  run,
};

interface Given {
  /** Its place in the input, for messages. */
  readonly name: string;
  readonly receipt: string;
}

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  const keys = readKeys(args);
  const given = await readReceipts(args);
  const report = new Report(args.flag("json"), terminal);
  const found = await keys();
  if (found instanceof ShredwayCallError) {
    terminal.note(`shredway verify-receipt: not verified: ${found.message}`);
    return exitCodes.failed;
  }
  for (const each of given) await report.verify(each, found);
  return report.isGood ? exitCodes.ok : exitCodes.failed;
}

// ---- keys -----------------------------------------------------------------------------------

type Keys = () => Promise<SigningKeys | ShredwayCallError>;

/** Throws ShredwayError "usage". */
function readKeys(args: Arguments): Keys {
  args.exclusive("url", "key");
  args.exclusive("url", "key-file");
  args.exclusive("key", "key-file");
  const [url, key, file] = [args.text("url"), args.text("key"), args.text("key-file")];
  if (url !== undefined) return fetched(url);
  if (key !== undefined) return () => Promise.resolve(keysIn("--key", key.trim()));
  if (file !== undefined) {
    const keys = keysIn(`--key-file ${file}`, readText("--key-file", file).trim());
    return () => Promise.resolve(keys);
  }
  throw usageError(
    "missing key; expected --url URL of the service, --key KEY, or --key-file FILE with its stored keys",
  );
}

function fetched(url: string): Keys {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed?.protocol !== "http:" && parsed?.protocol !== "https:") {
    throw usageError(`--url: invalid value ${quote(url)}; expected http://host:port or https://…`);
  }
  // An API key in the URL is not needed, and not sent.
  const client = new ShredwayClient({ url: `${parsed.origin}${parsed.pathname}` });
  return async () => {
    try {
      return await client.getSigningKeys();
    } catch (error) {
      if (error instanceof ShredwayCallError) return error;
      throw error;
    }
  };
}

/** Throws ShredwayError "usage". */
function keysIn(what: string, text: string): SigningKeys {
  if (keyPattern.test(text)) return { keys: [{ kty: "OKP", crv: "Ed25519", x: text }] };
  const values = text.startsWith("-----BEGIN PUBLIC KEY-----") ? [jwkIn(text)] : listIn(text);
  const keys = values.flatMap((value) => {
    if (!isObject(value)) return [];
    const { kty, crv, x } = value;
    const isUsable = kty === "OKP" && crv === "Ed25519" && typeof x === "string";
    return isUsable && keyPattern.test(x) ? [{ kty, crv, x }] : [];
  });
  if (keys.length > 0) return { keys };
  // Not quoted, because it may be a private key.
  throw usageError(`${what}: expected ${keyExpected}, got another content`);
}

function jwkIn(pem: string): unknown {
  try {
    return createPublicKey(pem).export({ format: "jwk" });
  } catch {
    return null;
  }
}

/** The elements of a JWK Set, or one JWK. */
function listIn(text: string): readonly unknown[] {
  try {
    const value: unknown = JSON.parse(text);
    const keys: unknown = isObject(value) ? value["keys"] : undefined;
    return Array.isArray(keys) ? keys : [value];
  } catch {
    return [];
  }
}

// ---- receipts -------------------------------------------------------------------------------

function readText(option: string, path: string): string {
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    throw usageError(`${option}: cannot read ${path}: ${messageOf(error)}`);
  }
  if (bytes.length <= inputBytesMax) return bytes.toString("utf8");
  throw usageError(`${option}: expected at most ${inputBytesMax} bytes, got ${bytes.length}`);
}

function linesOf(name: string, text: string): Given[] {
  const lines = text.split(/\s+/).filter((line) => line !== "");
  if (lines.length === 0) throw usageError(`${name}: expected a receipt, got none`);
  return lines.map((receipt, i) => ({
    name: lines.length === 1 ? name : `${name}, line ${i + 1}`,
    receipt,
  }));
}

async function readReceipts(args: Arguments): Promise<Given[]> {
  const standardInput = async (): Promise<Given[]> =>
    linesOf("standard input", await readAll(process.stdin));
  const given: Given[] = [];
  for (const [i, text] of args.positionals.entries()) {
    if (text === "-") given.push(...(await standardInput()));
    else given.push({ name: `argument ${i + 1}`, receipt: text });
  }
  for (const path of args.texts("file")) given.push(...linesOf(path, readText("--file", path)));
  if (given.length > 0) return given;
  if (process.stdin.isTTY) {
    throw usageError("missing receipt; expected a text, --file FILE, or - for standard input");
  }
  return standardInput();
}

class Report {
  readonly #isJson: boolean;
  readonly #terminal: Terminal;
  isGood = true;

  constructor(isJson: boolean, terminal: Terminal) {
    this.#isJson = isJson;
    this.#terminal = terminal;
  }

  async verify({ name, receipt }: Given, keys: SigningKeys): Promise<void> {
    try {
      const content = await verifyReceipt(receipt, keys);
      if (this.#isJson) this.#terminal.line(toJson({ receipt: name, valid: true, content }));
      else for (const line of linesOfReceipt(name, content)) this.#terminal.line(line);
    } catch (error) {
      if (!(error instanceof ShredwayCallError)) throw error;
      this.isGood = false;
      const { reason, message } = error;
      if (this.#isJson)
        this.#terminal.line(toJson({ receipt: name, valid: false, reason, message }));
      else this.#terminal.note(`shredway verify-receipt: ${name}: INVALID: ${message}`);
    }
  }
}

function linesOfReceipt(name: string, receipt: Receipt): string[] {
  const { statement, time, slot, method, bundleId, transactions } = receipt;
  const where = slot === null ? "" : `, slot ${slot}`;
  const bundle = bundleId === null ? "" : `, bundle ${bundleId}`;
  return [
    `${name}: valid, ${statement}, signed ${time}${where}, ${method}${bundle}`,
    ...transactions.flatMap(({ signature, receivedAt, tipLamports, routes, held, end }) => [
      `  ${signature}`,
      `    received ${receivedAt}, tip ${tipLamports ?? "unknown"} lamports, ` +
        (held === null ? `queued by ${routes.join(", ") || "no route"}` : `held: ${held}`),
      ...(end ? [`    ${endText(end)}`] : []),
    ]),
  ];
}

function endText({
  state,
  at,
  reason,
  slot,
  sibling,
}: NonNullable<Receipt["transactions"][number]["end"]>): string {
  const where = slot === null ? "" : ` in slot ${slot}`;
  const by = sibling === null ? "" : ` by ${sibling}`;
  return `${state}${where}${by} (${reason}) at ${at}`;
}
