// Receipt file of `shredway send --receipt`: verifies each receipt and appends it to the file.
//
// Receipts of accepted submissions come with the response over HTTP. Those of QUIC, and those of final
// states, are fetched with getReceipt. Problems never stop the sending of transactions.

import { appendFileSync } from "node:fs";
import { type ShredwayClient, type SigningKeys, verifyReceipt } from "../../client/index.ts";
import { messageOf } from "../../core/errors.ts";
import { usageError } from "../terminal/command.ts";

type Statement = "accepted" | "final";

export class ReceiptFile {
  readonly path: string;
  readonly #client: ShredwayClient;
  readonly problems: string[] = [];
  /** Verified and stored receipts. */
  count = 0;
  #keys: SigningKeys | null = null;
  /** The receipt of the last response; undefined: none was expected. */
  #last: string | null | undefined;

  /** Throws ShredwayError "usage" if the file cannot be written; then nothing was sent. */
  static open(path: string, client: ShredwayClient): ReceiptFile {
    try {
      appendFileSync(path, "");
    } catch (error) {
      throw usageError(`--receipt: cannot write ${path}: ${messageOf(error)}`);
    }
    return new ReceiptFile(path, client);
  }

  private constructor(path: string, client: ShredwayClient) {
    this.path = path;
    this.#client = client;
  }

  /** The client's `onReceipt`. */
  readonly received = (receipt: string | null): void => {
    this.#last = receipt;
  };

  /** After the response to one call: its signatures, null for a rejected one. */
  async accepted(results: readonly { readonly signature: string | null }[]): Promise<void> {
    const receipt = this.#last;
    this.#last = undefined;
    const signatures = results.flatMap(({ signature }) => signature ?? []);
    if (typeof receipt === "string") await this.#keep(receipt, signatures, "accepted");
    else for (const signature of signatures) await this.#fetch(signature, "accepted");
  }

  async ended(signatures: readonly string[]): Promise<void> {
    for (const signature of signatures) await this.#fetch(signature, "final");
  }

  async #fetch(signature: string, statement: Statement): Promise<void> {
    try {
      const receipt = await this.#client.getReceipt(signature, { statement });
      await this.#keep(receipt, [signature], statement);
    } catch (error) {
      this.problems.push(`no receipt of ${signature}: ${messageOf(error)}`);
    }
  }

  /** A receipt that is not about these signatures is as useless as a forged one. */
  async #keep(receipt: string, signatures: readonly string[], expected: Statement): Promise<void> {
    const wanted = signatures.join(", ");
    try {
      this.#keys ??= await this.#client.getSigningKeys();
      const { statement, transactions } = await verifyReceipt(receipt, this.#keys);
      const named = transactions.map((one) => one.signature).join(", ");
      if (statement !== expected || named !== wanted) {
        throw new Error(`expected ${expected} of ${wanted}, got ${statement} of ${named}`);
      }
      appendFileSync(this.path, `${receipt}\n`);
      this.count++;
    } catch (error) {
      this.problems.push(`invalid receipt of ${wanted}: ${messageOf(error)}`);
    }
  }
}
