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

export class RouteTable {
  readonly #open: (config: RouteConfig) => Route;
  #entries: readonly Entry[] = [];
  #routes: readonly Route[] = [];

  constructor(open: (config: RouteConfig) => Route) {
    this.#open = open;
  }

  /** Routes in configuration order. Each `replace` creates a new array. */
  routes(): readonly Route[] {
    return this.#routes;
  }

  snapshots(): RouteSnapshot[] {
    return this.#routes.map((route) => route.snapshot());
  }

  /**
   * The new routes are in force before the first await. Settles when the removed routes are closed.
   * Rejects with the error of opening a route, and then changes nothing.
   */
  async replace(configs: readonly RouteConfig[]): Promise<void> {
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
      await Promise.all(opened.map((route) => route.close()));
      throw thrown;
    }
    const removed = this.#entries.filter((entry) => !entries.includes(entry));
    this.#entries = entries;
    this.#routes = entries.map(({ route }) => route);
    await Promise.all(removed.map(({ route }) => route.close()));
  }

  /** Settles when all requests have ended or were cut. */
  async close(): Promise<void> {
    await this.replace([]);
  }
}
