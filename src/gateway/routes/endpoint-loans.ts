// Loans of one partner endpoint: which of its connections the fast path may use.
//
// partner-endpoint.ts lends idle connections when nothing waits, and reclaims them when it needs them.

import type { RouteLoans } from "../fast-path/route-loans.ts";
import type { RouteCapabilities } from "../submission/types.ts";
import { type PartnerConnection, requestHead } from "./partner-connection.ts";
import { callParts } from "./send-transaction.ts";

interface EndpointForm {
  readonly url: URL;
  /** Path of sendTransaction. */
  readonly path: string;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  readonly capabilities: Pick<RouteCapabilities, "minimumTipLamports" | "transactionBytesMax">;
}

export class EndpointLoans {
  readonly #loans: RouteLoans;
  /** Connections that were lent, by the number of the loan. */
  readonly #lent = new Map<number, PartnerConnection>();

  /** Sets the form of a request with one plain transaction in the fast path. */
  constructor(loans: RouteLoans, { url, path, headers, capabilities }: EndpointForm) {
    this.#loans = loans;
    const head = requestHead(url, { method: "POST", path, headers });
    loans.setForm({ head: `${head}content-length: `, ...callParts, ...capabilities });
  }

  /** Number of the route in the fast path; null: nothing was lent yet. */
  get route(): number | null {
    return this.#loans.number;
  }

  /** Lends all of them that are connected. `nowNs`: monotonic. */
  lend(idle: readonly PartnerConnection[], nowNs: bigint): void {
    for (const connection of idle) {
      if (connection.isLent || !connection.isConnected) continue;
      connection.lend(this.#loans, nowNs);
      if (connection.loanNumber !== null) this.#lent.set(connection.loanNumber, connection);
    }
    if (this.#lent.size > 2 * idle.length + 16) this.#forgetEnded();
  }

  /** The connection of a loan; undefined: it was closed. */
  connectionOf(loan: number): PartnerConnection | undefined {
    return this.#lent.get(loan);
  }

  #forgetEnded(): void {
    for (const [number, connection] of this.#lent) {
      if (connection.loanNumber !== number) this.#lent.delete(number);
    }
  }
}
