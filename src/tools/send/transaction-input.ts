// The transactions that a user gives to `shredway send`: as texts, in files, or on standard input.
//
// A file contains one transaction in bytes, or texts in base64 or base58, one on each line. The service checks
// their content.

import { readFileSync } from "node:fs";
import { buffer } from "node:stream/consumers";
import { messageOf } from "../../core/errors.ts";
import { usageError } from "../terminal/command.ts";

/** Largest bundle or batch as text. */
const inputBytesMax = 256 * 1024;
/** A bundle has at most 4; more belong in several calls. */
const transactionsMax = 100;
const textPattern = /^[A-Za-z0-9+/=\s]+$/;

export interface GivenTransaction {
  /** Its place in the input, for messages. */
  readonly name: string;
  readonly content: Uint8Array | string;
}

interface InputSources {
  readonly texts: readonly string[];
  readonly files: readonly string[];
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
}

function contentsOf(name: string, bytes: Buffer): GivenTransaction[] {
  if (bytes.length === 0) throw usageError(`${name}: expected a transaction, got 0 bytes`);
  if (bytes.length > inputBytesMax) {
    throw usageError(`${name}: expected at most ${inputBytesMax} bytes, got ${bytes.length}`);
  }
  const text = bytes.toString("latin1");
  if (!textPattern.test(text)) return [{ name, content: new Uint8Array(bytes) }];
  const lines = text.split(/\s+/).filter((line) => line !== "");
  return lines.map((content, i) => ({
    name: lines.length === 1 ? name : `${name}, line ${i + 1}`,
    content,
  }));
}

function readInput(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw usageError(`--file: cannot read ${path}: ${messageOf(error)}`);
  }
}

/** In the order of the command line, texts first. Throws ShredwayError "usage". */
export async function readTransactions({
  texts,
  files,
  stdin,
}: InputSources): Promise<GivenTransaction[]> {
  const found: GivenTransaction[] = [];
  for (const [i, content] of texts.entries()) {
    if (content === "-") found.push(...contentsOf("standard input", await buffer(stdin)));
    else found.push({ name: `argument ${i + 1}`, content });
  }
  for (const path of files) found.push(...contentsOf(path, readInput(path)));
  if (found.length === 0) {
    if (stdin.isTTY === true) {
      throw usageError(
        "missing transaction; expected a text in base64 or base58, --file FILE, or - for standard input",
      );
    }
    found.push(...contentsOf("standard input", await buffer(stdin)));
  }
  if (found.length <= transactionsMax) return found;
  throw usageError(`expected at most ${transactionsMax} transactions, got ${found.length}`);
}
