// The open routes; a reload replaces them without losing queued transactions.
//
// The service owns it; the submission pipeline reads `routes`. A route with unchanged configuration
// stays open, with its queue, health and counters. New routes are in force before old ones close.

import type { RouteConfig } from "../../core/configuration/configuration.ts";
import type { Route, RouteSnapshot } from "../submission/types.ts";

interface Entry {
  /** The configuration as text with sorted keys; routes with equal texts are equal. */
  readonly text: string;
  readonly route: Route;
}

function sortedText(value: unknown): string {
  return JSON.stringify(value, (_key, inner: unknown) =>
    typeof inner === "object" && inner !== null && !Array.isArray(inner)
      ? Object.fromEntries(Object.entries(inner).toSorted(([a], [b]) => (a < b ? -1 : 1)))
      : inner,
  );
}

/** Routes that are open, but not in force. Call exactly one of the two. */
interface PreparedRoutes {
  /** The routes are in force when it returns. Settles when the removed routes are closed. */
  apply(): Promise<void>;
  /** Closes what was opened. */
  abandon(): Promise<void>;
}

async function closeAll(routes: readonly Route[]): Promise<void> {
  await Promise.all(routes.map((route) => route.close()));
}

export class RouteTable {
  readonly #open: (config: RouteConfig) => Route;
  #entries: readonly Entry[] = [];
  #routes: readonly Route[] = [];
  readonly #closing = new Set<Route>();

  constructor(open: (config: RouteConfig) => Route) {
    this.#open = open;
  }

  /** Routes in configuration order. Each `replace` creates a new array. */
  routes(): readonly Route[] {
    return this.#routes;
  }

  /** Routes that a reload removed, until their last request has ended. */
  closingRoutes(): ReadonlySet<Route> {
    return this.#closing;
  }

  snapshots(): RouteSnapshot[] {
    return this.#routes.map((route) => route.snapshot());
  }

  /** Opens the new routes. Throws the error of opening one, and closes the others then. */
  prepare(configs: readonly RouteConfig[]): PreparedRoutes {
    const known = new Map(this.#entries.map((entry) => [entry.text, entry]));
    const opened: Route[] = [];
    const entries: Entry[] = [];
    try {
      for (const config of configs) {
        const text = sortedText(config);
        const unchanged = known.get(text);
        if (unchanged) {
          entries.push(unchanged);
          continue;
        }
        const route = this.#open(config);
        opened.push(route);
        entries.push({ text, route });
      }
    } catch (thrown) {
      closeAll(opened).catch(() => {}); // the first error is the one to report
      throw thrown;
    }
    return {
      apply: () => {
        const removed = this.#entries.filter((entry) => !entries.includes(entry));
        this.#entries = entries;
        this.#routes = entries.map(({ route }) => route);
        return this.#close(removed.map(({ route }) => route));
      },
      abandon: () => closeAll(opened),
    };
  }

  async #close(removed: readonly Route[]): Promise<void> {
    for (const route of removed) this.#closing.add(route);
    try {
      await closeAll(removed);
    } finally {
      for (const route of removed) this.#closing.delete(route);
    }
  }

  /** Prepares and applies. */
  async replace(configs: readonly RouteConfig[]): Promise<void> {
    await this.prepare(configs).apply();
  }

  /** Settles when all requests have ended or were cut. */
  async close(): Promise<void> {
    await this.replace([]);
  }
}
