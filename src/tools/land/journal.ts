// Journal of a landing benchmark: a file that knows every signed transaction before it is sent.
//
// Lines of JSON. A round is on disk (fsync) before its first transaction leaves, so a killed run can continue
// and pays nothing twice. Answers and ends follow without fsync, because the chain knows them too. A last line
// without its end was never acted upon and is removed. One process at a time: a lock of the kernel, which ends
// with the process.

import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readFileSync,
  writeSync,
} from "node:fs";
import { createServer, type Server } from "node:net";
import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import { createPrivateFile } from "../../platform/solana/private-file.ts";
import { type JournalHead, JournalReader, type JournalState } from "./journal-reader.ts";
import type { RoundRecord, SenderAnswer, TransactionEnd } from "./records.ts";

const version = 1;

function bigintText(_key: string, value: unknown): unknown {
  return typeof value === "bigint" ? `${value}n` : value;
}

function lineOf(line: object): string {
  return `${JSON.stringify(line, bigintText)}\n`;
}

/** The lines of the file, and its length up to the last complete line. */
function readLines(path: string, file: number): { lines: string[]; length: number } {
  if (!fstatSync(file).isFile()) {
    throw new ShredwayError("system", `journal ${path}: expected a regular file, got another kind`);
  }
  const bytes = readFileSync(file);
  const length = bytes.lastIndexOf(0x0a) + 1;
  const text = bytes.subarray(0, length).toString("utf8");
  const lines = text === "" ? [] : text.slice(0, -1).split("\n");
  return { lines, length };
}

/** The kernel releases the name when the process ends in any way. */
async function lock(path: string, file: number): Promise<Server> {
  const { dev, ino } = fstatSync(file);
  const server = createServer((socket) => socket.destroy());
  server.unref();
  await new Promise<void>((resolve, reject) => {
    server.once("error", () => {
      const message = `journal ${path}: in use by another process; wait for its end, or choose another file`;
      reject(new ShredwayError("system", message));
    });
    server.listen(`\0shredway-land-${dev}-${ino}`, resolve);
  });
  return server;
}

export class Journal {
  readonly path: string;
  readonly head: JournalHead;
  readonly #file: number;
  readonly #lock: Server;
  /** A line may be incomplete: nothing may follow it. */
  #isBroken = false;
  #isClosed = false;

  private constructor(path: string, head: JournalHead, file: number, held: Server) {
    this.path = path;
    this.head = head;
    this.#file = file;
    this.#lock = held;
  }

  /**
   * Creates the file with its first line, at once, with mode 0600. Throws ShredwayError "usage" if it exists, and
   * "config_invalid" or "system" if it cannot be written.
   */
  static async create(path: string, head: JournalHead): Promise<Journal> {
    if (existsSync(path)) {
      const message = `--journal ${path}: the file exists; continue its run with --resume ${path}, or choose another file`;
      throw new ShredwayError("usage", message);
    }
    createPrivateFile({ path, what: "journal" }, lineOf({ kind: "run", version, ...head }));
    const file = openSync(path, constants.O_RDWR | constants.O_APPEND);
    return new Journal(path, head, file, await lock(path, file));
  }

  /**
   * Opens a journal to continue it. Throws ShredwayError "usage" if it does not exist or its run is complete,
   * and "system" if it is damaged or in use.
   */
  static async resume(path: string): Promise<{ journal: Journal; state: JournalState }> {
    let file: number;
    try {
      file = openSync(path, constants.O_RDWR | constants.O_APPEND);
    } catch (cause) {
      const message = `--resume: cannot open journal ${path}: ${messageOf(cause)}`;
      throw new ShredwayError("usage", message, { cause });
    }
    let held: Server | undefined;
    try {
      held = await lock(path, file);
      const { lines, length } = readLines(path, file);
      const state = new JournalReader(path).read(lines, version);
      if (state.isFinished) {
        const message = `journal ${path}: its run is complete; start a new one without --resume`;
        throw new ShredwayError("usage", message);
      }
      ftruncateSync(file, length);
      fsyncSync(file);
      return { journal: new Journal(path, state.head, file, held), state };
    } catch (error) {
      held?.close();
      closeSync(file);
      throw error;
    }
  }

  /** On disk when it returns: only then may the transactions be sent. Throws ShredwayError "system". */
  round(round: RoundRecord): void {
    const { transactions, ...rest } = round;
    const signed = transactions.map(({ signature, lamports }) => ({ signature, lamports }));
    this.#write({ kind: "round", ...rest, transactions: signed }, true);
  }

  answer(round: number, sender: number, answer: SenderAnswer): void {
    this.#write({ kind: "answer", round, sender, ...answer }, false);
  }

  end(round: number, sender: number, end: TransactionEnd): void {
    this.#write({ kind: "end", round, sender, ...end }, false);
  }

  finish(): void {
    this.#write({ kind: "finished" }, true);
  }

  /** Idempotent. Answers and ends that come later are ignored. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#lock.close();
    closeSync(this.#file);
  }

  #write(line: object, isDurable: boolean): void {
    if (this.#isClosed && !isDurable) return;
    const bytes = Buffer.from(lineOf(line));
    try {
      if (this.#isBroken || this.#isClosed) throw new Error("an earlier line failed");
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#file, bytes, at);
      if (isDurable) fsyncSync(this.#file);
    } catch (cause) {
      this.#isBroken = true;
      const message = `journal ${quote(this.path)}: cannot be written, so nothing more is sent: ${messageOf(cause)}`;
      throw new ShredwayError("system", message, { cause });
    }
  }
}
