// The open routes by name, exchanged on reload without losing what is queued.
//
// Owned by the service; the pipeline reads `routes`. A route whose configuration did not change stays
// as it is, with its queue, health and counters. The new ones are in force before the old ones close.

import type { RouteConfig } from "../../core/configuration/configuration.ts";
import type { Route, RouteSnapshot } from "../submission/types.ts";

interface Entry {
  /** The configuration as text, keys in order: equal texts, equal routes. */
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

  /** In the order of the configuration. A new array after each `replace`. */
  routes(): readonly Route[] {
    return this.#routes;
  }

  snapshots(): RouteSnapshot[] {
    return this.#routes.map((route) => route.snapshot());
  }

  /**
   * In force before the first await; settles when the routes that are gone are closed. Rejects with
   * what opening a route throws; nothing has changed then.
   */
  async replace(configs: readonly RouteConfig[]): Promise<void> {
    const known = new Map(this.#entries.map((entry) => [entry.text, entry]));
    const opened: Route[] = [];
    const entries: Entry[] = [];
    try {
      for (const config of configs) {
        const text = sortedText(config);
        const kept = known.get(text);
        if (kept) {
          entries.push(kept);
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
    const gone = this.#entries.filter((entry) => !entries.includes(entry));
    this.#entries = entries;
    this.#routes = entries.map(({ route }) => route);
    await Promise.all(gone.map(({ route }) => route.close()));
  }

  /** Settles when requests under way ended or were cut. */
  async close(): Promise<void> {
    await this.replace([]);
  }
}
