// Reads senders from the command line or a file: `NAME=URL`, then words that describe them.
//
// "ours=https://gateway.example/ dialect=shredway tip=10000 api-key-file=key.txt mev-protect". A file has one sender
// on each line. Every error is a ShredwayError "usage" that names the sender.

import { readFileSync } from "node:fs";
import { messageOf, quote } from "../../core/errors.ts";
import { didYouMean } from "../../core/near-names.ts";
import { parsePubkey, u64Max } from "../../core/primitives.ts";
import { dialects } from "../../core/quic/dialects.ts";
import { splitName } from "../listen/feed-options.ts";
import { usageError } from "../terminal/command.ts";
import { type SenderDialect, type SenderPlan, senderDialects, senderSwitches } from "./plan.ts";

export const sendersMax = 8;
const retriesMax = 1000;

/** Words with a value, and the dialects that accept them; null: all. */
const settings: Readonly<Record<string, readonly SenderDialect[] | null>> = {
  dialect: null,
  tip: null,
  "tip-to": null,
  price: null,
  "max-retries": ["rpc", "shredway", "jito", "astralane"],
  "api-key": ["shredway", "jito", "astralane", "quic"],
  "api-key-file": ["shredway", "jito", "astralane", "quic"],
  header: ["rpc", "jito", "astralane", "text", "bytes"],
  fingerprint: ["quic"],
  alpn: ["quic"],
};
const knownWords = [...Object.keys(settings), ...Object.keys(senderSwitches)];
const quicProtocols = dialects
  .filter(({ identity }) => identity === "commonName")
  .map(({ protocol }) => protocol);

/** The words of one sender. */
class SenderWords {
  readonly name: string;
  readonly switches: readonly string[];
  readonly #values = new Map<string, string[]>();

  constructor(name: string, words: readonly string[]) {
    this.name = name;
    const switches: string[] = [];
    for (const word of words) {
      const [key = "", value] = /^([a-z-]+)(?:=(.*))?$/s.exec(word)?.slice(1) ?? [];
      const isSwitch = Object.hasOwn(senderSwitches, key);
      if (!knownWords.includes(key)) {
        const hint = didYouMean(key, knownWords);
        throw this.refused(
          `unknown word ${quote(word)}; expected one of ${knownWords.join(", ")}${hint}`,
        );
      }
      if (isSwitch !== (value === undefined)) {
        throw this.refused(
          isSwitch ? `${key}: expected no value` : `${key}: missing value; expected ${key}=…`,
        );
      }
      if (isSwitch) switches.push(key);
      else this.#values.set(key, [...(this.#values.get(key) ?? []), value ?? ""]);
    }
    for (const [key, values] of this.#values) {
      if (values.length > 1 && key !== "header") throw this.refused(`${key} is given twice`);
    }
    this.switches = [...new Set(switches)].toSorted();
  }

  refused(text: string): Error {
    return usageError(`sender ${this.name}: ${text}`);
  }

  given(): readonly string[] {
    return [...this.#values.keys(), ...this.switches];
  }

  text(key: string): string | null {
    return this.#values.get(key)?.[0] ?? null;
  }

  texts(key: string): readonly string[] {
    return this.#values.get(key) ?? [];
  }

  choice<T extends string>(key: string, choices: readonly T[]): T | null {
    const text = this.text(key);
    if (text === null) return null;
    const found = choices.find((each) => each === text);
    if (found !== undefined) return found;
    throw this.refused(
      `${key}: invalid value ${quote(text)}; expected one of ${choices.join(", ")}`,
    );
  }

  amount(key: string, max: bigint): bigint | null {
    const text = this.text(key);
    if (text === null) return null;
    if (/^\d{1,20}$/.test(text) && BigInt(text) <= max) return BigInt(text);
    throw this.refused(`${key}: invalid value ${quote(text)}; expected an integer up to ${max}`);
  }
}

function readUrl(words: SenderWords, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isKnown = url && ["http:", "https:", "quic:"].includes(url.protocol) && url.host !== "";
  if (!isKnown) {
    throw words.refused(
      `invalid URL ${quote(text)}; expected http://host:port/path, https://… or quic://host:port`,
    );
  }
  if (url.protocol === "quic:" && url.port === "") {
    throw words.refused(`invalid URL ${quote(text)}; expected quic://host:port`);
  }
  return url;
}

function readDialect(words: SenderWords, { protocol }: URL): SenderDialect {
  const isQuic = protocol === "quic:";
  const dialect = words.choice("dialect", senderDialects) ?? (isQuic ? "quic" : "rpc");
  if ((dialect === "quic") === isQuic) return dialect;
  throw words.refused(
    `dialect ${dialect}: expected a URL of ${isQuic ? "http or https" : "quic"}, got one of ${protocol.slice(0, -1)}`,
  );
}

function readApiKey(words: SenderWords): string | null {
  const [text, file] = [words.text("api-key"), words.text("api-key-file")];
  if (text !== null && file !== null)
    throw words.refused("api-key and api-key-file exclude each other");
  const key = file === null ? text : keyIn(words, file);
  if (key === "") throw words.refused("the API key is empty");
  return key;
}

function keyIn(words: SenderWords, path: string): string {
  try {
    return readFileSync(path, "utf8").trim();
  } catch (error) {
    throw words.refused(`api-key-file: cannot read ${path}: ${messageOf(error)}`);
  }
}

function readHeaders(words: SenderWords): Readonly<Record<string, string>> {
  const pairs = words.texts("header").map((text) => {
    const [, name = "", value = ""] = /^([A-Za-z0-9-]+):(.+)$/.exec(text) ?? [];
    if (name !== "") return [name.toLowerCase(), value] as const;
    throw words.refused(`header: invalid value ${quote(text)}; expected header=Name:value`);
  });
  return Object.fromEntries(pairs);
}

function readTipTo(words: SenderWords): string | null {
  const text = words.text("tip-to");
  try {
    return text === null ? null : parsePubkey(text);
  } catch (error) {
    throw words.refused(`tip-to: ${messageOf(error)}`);
  }
}

function readFingerprint(words: SenderWords): string | null {
  const text = words.text("fingerprint");
  if (text === null || /^[0-9a-f]{64}$/i.test(text.replaceAll(":", ""))) return text;
  throw words.refused(
    `fingerprint: invalid value ${quote(text)}; expected SHA-256 in hex (64 digits)`,
  );
}

function checkWords(words: SenderWords, dialect: SenderDialect): void {
  for (const word of words.given()) {
    const owners = settings[word] ?? senderSwitches[word] ?? null;
    if (owners && !owners.includes(dialect)) {
      throw words.refused(
        `${word} is not available with the dialect ${dialect}; expected ${owners.join(", ")}`,
      );
    }
  }
  if (words.switches.includes("unverified") && words.text("fingerprint") !== null) {
    throw words.refused("unverified and fingerprint exclude each other");
  }
}

function parseSender(text: string): SenderPlan {
  const [first = "", ...rest] = text.trim().split(/\s+/);
  const [name, urlText] = splitName("sender", first, "URL");
  const words = new SenderWords(name, rest);
  const url = readUrl(words, urlText);
  const dialect = readDialect(words, url);
  checkWords(words, dialect);
  const apiKey = readApiKey(words);
  if (dialect === "quic" && apiKey === null) {
    throw words.refused("missing API key; expected api-key-file=FILE");
  }
  const tipTo = readTipTo(words);
  const tipLamports = words.amount("tip", u64Max) ?? 0n;
  const isAsked = dialect === "shredway" || dialect === "jito";
  if (tipLamports > 0n && tipTo === null && !isAsked) {
    throw words.refused(`tip=${tipLamports} without an account; expected tip-to=ADDRESS`);
  }
  if (tipLamports === 0n && tipTo !== null) throw words.refused("tip-to without tip=LAMPORTS");
  const maxRetries = words.amount("max-retries", BigInt(retriesMax));
  return {
    name,
    dialect,
    url,
    tipLamports,
    tipTo,
    price: words.amount("price", u64Max),
    maxRetries: maxRetries === null ? null : Number(maxRetries),
    switches: words.switches,
    headers: readHeaders(words),
    apiKey,
    fingerprint: readFingerprint(words),
    alpn: words.choice("alpn", quicProtocols),
  };
}

function linesOf(path: string): string[] {
  try {
    return readFileSync(path, "utf8")
      .split("\n")
      .map((line) => line.trim())
      .filter((line) => line !== "" && !line.startsWith("#"));
  } catch (error) {
    throw usageError(`--senders: cannot read ${path}: ${messageOf(error)}`);
  }
}

/** `file`: path of further senders. Throws ShredwayError "usage". */
export function readSenders(texts: readonly string[], file: string | undefined): SenderPlan[] {
  const senders = [...texts, ...(file === undefined ? [] : linesOf(file))].map(parseSender);
  const names = senders.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) !== i);
  if (twice !== undefined)
    throw usageError(`sender ${twice}: duplicate name; expected different names`);
  if (senders.length >= 1 && senders.length <= sendersMax) return senders;
  throw usageError(
    `got ${senders.length} senders; expected 1 to ${sendersMax} (--sender "NAME=URL …", or --senders FILE)`,
  );
}
