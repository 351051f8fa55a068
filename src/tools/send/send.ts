// `shredway send`: sends transactions to a gateway by HTTP or QUIC, like a user's program.
//
// Uses the typed client and connectQuic. The connection is open before the first transaction, so that the
// printed times contain only the submission.

import { ShredwayCallError, ShredwayClient, type TransactionStatus } from "../../client/index.ts";
import { connectQuic } from "../../client/quic/index.ts";
import { systemClock } from "../../core/clock.ts";
import { messageOf } from "../../core/errors.ts";
import { bundleTransactionsMax } from "../../core/transactions/bundle-limits.ts";
import { type Arguments, type Command, exitCodes, usageError } from "../terminal/command.ts";
import { formatNs, toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { ReceiptFile } from "./receipt-file.ts";
import {
  keyVariable,
  quicPortDefault,
  readTarget,
  type Target,
  urlDefault,
  urlVariable,
} from "./target.ts";
import { type GivenTransaction, readTransactions } from "./transaction-input.ts";

const timeoutSecondsDefault = 10;
/** The service ends every submission after about two minutes. */
const waitSecondsMax = 180;

export const send: Command = {
  name: "send",
  summary: "send transactions to a gateway by HTTP or QUIC, and show the response",
  usage: [
    "send [TRANSACTION …] [--file FILE …] [--bundle] [--url URL] [--api-key-file FILE | --api-key KEY] [--mev-protect] " +
      "[--wait] [--receipt FILE] [--timeout SECONDS] [--json]",
    "send … --quic [--quic-address ADDRESS] [--fingerprint HEX | --unverified]",
  ],
  description: `
Sends signed transactions, one after the other, and prints the signature or the error of each, with the time to
the response. TRANSACTION is a text in base64 or base58, or - for standard input. A file contains the bytes of one
transaction, or texts, one on each line. Without a transaction, standard input is read.

A signature means that a route of the gateway accepted the transaction. --wait also waits for its final state.
Without --url, the gateway of the sandbox on this machine is used, with the key that the sandbox stored in ./data.
A key on the command line is visible to other users of this machine: prefer --api-key-file or ${keyVariable}.

--receipt asks for a signed receipt of each submission, verifies it with the keys that the service publishes, and
appends it to the file, one on each line; with --wait, those of the final states follow. shredway verify-receipt
reads the file. The exit code is 1 if a receipt is missing or invalid.

With --quic the transactions are sent over QUIC. Before the key is sent, the certificate of the service is checked:
by its fingerprint, or by the certificate authorities of Node.js and the name in the address. On a loopback
address it is not checked.`,
  options: {
    file: { value: "FILE", repeated: true, help: "send the transactions in this file" },
    bundle: { help: `send all transactions as one bundle (at most ${bundleTransactionsMax})` },
    url: { value: "URL", help: `URL of the gateway (default: ${urlVariable}, or ${urlDefault})` },
    "api-key-file": { value: "FILE", help: "file with the API key" },
    "api-key": { value: "KEY", help: `API key (default: the one in the URL, or ${keyVariable})` },
    "mev-protect": { help: "use only routes with MEV protection" },
    quic: { help: `send over QUIC (UDP port ${quicPortDefault} of the URL's host)` },
    "quic-address": { value: "ADDRESS", help: "host:port of the gateway for QUIC; implies --quic" },
    fingerprint: {
      value: "HEX",
      help: "SHA-256 fingerprint of the expected certificate; shredway doctor shows it",
    },
    unverified: { help: "accept any certificate; an attacker can then take the API key" },
    wait: { help: `wait for the final state of each transaction, at most ${waitSecondsMax} s` },
    receipt: { value: "FILE", help: "append the signed receipts to this file" },
    timeout: {
      value: "SECONDS",
      help: `limit of each response (default ${timeoutSecondsDefault})`,
    },
    json: { help: "print one JSON object for each transaction" },
  },
  positional: "TRANSACTION",
  examples: [
    "shredway send --file transaction.bin",
    "shredway send --file transaction.bin --wait --receipt receipts.txt",
    "shredway send --file transaction.bin --quic --wait",
    "shredway send - --url https://gateway.example --api-key-file key.txt --json",
    "shredway send --file one.txt --file two.txt --bundle",
    "shredway send --file transaction.bin --quic-address gateway.example:7000 --fingerprint 5F:…",
  ],
  run,
};

/** Opens its connection before the first transaction. */
interface Sender {
  one(content: Content): Promise<string>;
  bundle(contents: readonly Content[]): Promise<readonly string[]>;
  close(): void;
}

type Content = GivenTransaction["content"];

interface Result {
  readonly name: string;
  /** null: `error`. */
  readonly signature: string | null;
  readonly error: ShredwayCallError | null;
  readonly responseMs: number;
}

interface SendOptions {
  readonly mevProtect: boolean;
  readonly timeoutMs: number;
  /** Null: no receipts are requested. */
  readonly receipts: ReceiptFile | null;
}

async function run(args: Arguments, terminal: Terminal): Promise<number> {
  const target = readTarget(args, terminal.environment);
  const seconds = args.positive("timeout", 3600) ?? timeoutSecondsDefault;
  const given = await readTransactions({
    texts: args.positionals,
    files: args.texts("file"),
    stdin: process.stdin,
  });
  const isBundle = args.flag("bundle");
  if (isBundle && given.length > bundleTransactionsMax) {
    throw usageError(
      `--bundle: expected at most ${bundleTransactionsMax} transactions, got ${given.length}`,
    );
  }
  const { url, apiKey } = target;
  const timeoutMs = seconds * 1000;
  const client = new ShredwayClient({ url, apiKey, timeoutMs });
  const receiptPath = args.text("receipt");
  const receipts = receiptPath === undefined ? null : ReceiptFile.open(receiptPath, client);
  const options = { mevProtect: args.flag("mev-protect"), timeoutMs, receipts };
  const sender = await open(target, client, options);
  if (sender instanceof ShredwayCallError) {
    terminal.note(`shredway send: nothing was sent: ${sender.message}`);
    return exitCodes.failed;
  }
  const report = new Report(args, terminal);
  try {
    const groups = isBundle ? [given] : given.map((each) => [each]);
    for (const group of groups) {
      if (terminal.stopped.aborted) break;
      const results = await submit(sender, group, isBundle);
      report.sent(results);
      await receipts?.accepted(results);
    }
  } finally {
    sender.close();
  }
  if (args.flag("wait")) {
    const ended = await report.wait(client);
    await receipts?.ended(ended);
  }
  for (const line of receipts?.problems ?? []) terminal.note(`shredway send: ${line}`);
  if (receipts) terminal.note(`receipts: ${receipts.count} verified, in ${receipts.path}`);
  const isGood = report.isGood && (receipts?.problems.length ?? 0) === 0;
  return isGood && !terminal.stopped.aborted ? exitCodes.ok : exitCodes.failed;
}

async function open(
  target: Target,
  client: ShredwayClient,
  options: SendOptions,
): Promise<Sender | ShredwayCallError> {
  try {
    return await (target.quic ? openQuic(target, target.quic, options) : openHttp(client, options));
  } catch (error) {
    if (error instanceof ShredwayCallError) return withOwnOption(error);
    if (error instanceof TypeError) throw usageError(messageOf(error));
    throw error;
  }
}

/** A remedy of connectQuic names its option; the one of this command has another name. */
function withOwnOption(error: ShredwayCallError): ShredwayCallError {
  if (error.reason !== "certificate_untrusted") return error;
  const message = error.message.replace(/server\.fingerprint$/, "--fingerprint");
  return new ShredwayCallError(message, { reason: error.reason });
}

async function openHttp(
  client: ShredwayClient,
  { mevProtect, receipts }: SendOptions,
): Promise<Sender> {
  await client.getHealth(); // opens the connection
  const options = { mevProtect, ...(receipts && { onReceipt: receipts.received }) };
  return {
    one: (content) => client.sendTransaction(content, options),
    bundle: async (contents) => (await client.sendBundle(contents, options)).signatures,
    close: () => undefined,
  };
}

async function openQuic(
  { apiKey }: Target,
  { address, server }: NonNullable<Target["quic"]>,
  { mevProtect, timeoutMs }: SendOptions,
): Promise<Sender> {
  const more = { mevProtect, timeoutMs, ...(server && { server }) };
  const client = await connectQuic({ address, apiKey, ...more });
  return {
    one: (content) => client.send(content),
    bundle: (contents) => client.sendBundle(contents),
    close: () => client.close(),
  };
}

async function submit(
  sender: Sender,
  group: readonly GivenTransaction[],
  isBundle: boolean,
): Promise<readonly Result[]> {
  const contents = group.map(({ content }) => content);
  const [only = ""] = contents;
  const beganNs = systemClock.monotonicNs();
  const elapsedMs = (): number => Number(systemClock.monotonicNs() - beganNs) / 1e6;
  try {
    const signatures = isBundle ? await sender.bundle(contents) : [await sender.one(only)];
    const responseMs = elapsedMs();
    return group.map(({ name }, i) => {
      return { name, signature: signatures[i] ?? null, error: null, responseMs };
    });
  } catch (error) {
    if (!(error instanceof ShredwayCallError)) throw error;
    const name = isBundle ? "bundle" : (group[0]?.name ?? "");
    return [{ name, signature: null, error, responseMs: elapsedMs() }];
  }
}

/** Prints the results, in the order of the transactions. */
class Report {
  readonly #args: Arguments;
  readonly #terminal: Terminal;
  readonly #waiting: Result[] = [];
  isGood = true;

  constructor(args: Arguments, terminal: Terminal) {
    this.#args = args;
    this.#terminal = terminal;
  }

  sent(results: readonly Result[]): void {
    for (const result of results) {
      if (result.error) this.isGood = false;
      if (this.#args.flag("wait") && !result.error) this.#waiting.push(result);
      else this.#print(result, null);
    }
  }

  /** Ctrl-C ends the wait; the signatures are printed in any case. Returns those with a final state. */
  async wait(client: ShredwayClient): Promise<readonly string[]> {
    const { stopped } = this.#terminal;
    const ended: string[] = [];
    for (const result of this.#waiting) {
      try {
        const signature = result.signature ?? "";
        this.#terminal.progress(`${signature} accepted, waiting for its final state`);
        const timeoutMs = waitSecondsMax * 1000;
        const status = await client.waitForEnd(signature, { signal: stopped, timeoutMs });
        this.#terminal.clearProgress();
        if (status.state !== "landed") this.isGood = false;
        ended.push(signature);
        this.#print(result, status);
      } catch (error) {
        this.isGood = false;
        this.#terminal.clearProgress();
        this.#print(result, null);
        if (!stopped.aborted) this.#terminal.note(`shredway send: ${messageOf(error)}`);
      }
    }
    return ended;
  }

  #print(result: Result, status: TransactionStatus | null): void {
    if (this.#args.flag("json")) this.#terminal.line(toJson(jsonOf(result, status)));
    else if (result.error) this.#terminal.note(errorText(result, result.error));
    else this.#terminal.line(`${result.signature}  ${stateText(result, status)}`);
  }
}

function stateText({ responseMs }: Result, status: TransactionStatus | null): string {
  const accepted = `accepted in ${formatNs(responseMs * 1e6)}`;
  if (!status) return accepted;
  const where = status.slot === null ? "" : ` in slot ${status.slot}`;
  const why = status.reason === null ? "" : ` (${status.reason})`;
  return `${accepted}, ${status.state}${where}${why}`;
}

function errorText({ name, responseMs }: Result, { message, code }: ShredwayCallError): string {
  const number = code === null ? "" : `code ${code}, `;
  return `shredway send: ${name}: ${message} (${number}after ${formatNs(responseMs * 1e6)})`;
}

function jsonOf(
  { name, signature, error, responseMs }: Result,
  status: TransactionStatus | null,
): object {
  const { reason, code, httpStatus, message, retryAfterSeconds } = error ?? {};
  return {
    transaction: name,
    signature,
    responseMs: Math.round(responseMs * 1000) / 1000,
    error: error && { reason, code, httpStatus, message, retryAfterSeconds },
    ...(status && { state: status.state, slot: status.slot, reason: status.reason }),
  };
}
