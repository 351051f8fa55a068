// Timelines as customers see them, and the order of their events.

/** Ends that nothing can change. A transaction that every partner refused may be submitted again. */
export const lastEnds: ReadonlySet<string> = new Set([
  "landed",
  "landed_failed",
  "expired",
  "superseded",
]);

/** An event of a timeline, as a customer sees it. */
export interface ShownEvent {
  readonly kind: string;
  readonly route?: string | undefined;
  readonly attempt?: number | undefined;
  readonly slot?: number | null | undefined;
  readonly reason?: string | undefined;
  /** The transaction that superseded it. */
  readonly sibling?: string | undefined;
}

/** A timeline, as a customer sees it. */
export interface ShownStatus {
  readonly signature: string;
  readonly state: string;
  readonly events: readonly ShownEvent[];
}

/** The order of the events of one timeline. */
export class ShownTimeline {
  readonly #stages = new Map<string, "queued" | "sent" | "answered">();
  readonly #counts = new Map<string, number>();
  #end: string | null = null;

  /** Adds an event. Returns what is wrong with it; null: nothing. `isWhole`: none is missing before it. */
  add({ kind, route, attempt }: ShownEvent, isWhole: boolean): string | null {
    if (kind === "received")
      this.#end = null; // submitted again
    else if (this.#end !== null) return `${kind} after ${this.#end}`;
    if (lastEnds.has(kind) || kind === "rejected") this.#end = kind;
    if (route === undefined) return null;
    this.#counts.set(`${kind} ${route}`, this.count(kind, route) + 1);
    const name = `${route} ${attempt}`;
    const stage = this.#stages.get(name);
    if (kind === "queued") {
      if (stage === "queued") return `attempt ${name} was queued twice`;
      this.#stages.set(name, "queued");
      return null;
    }
    if (stage === undefined && isWhole) return `${kind} of attempt ${name}, which was not queued`;
    if (kind === "sent" && stage !== "queued" && isWhole) return `attempt ${name} was sent twice`;
    if (kind === "acknowledged" && stage !== "sent" && isWhole)
      return `attempt ${name} was acknowledged before it was sent`;
    this.#stages.set(name, kind === "sent" ? "sent" : "answered");
    return null;
  }

  /** The newest events may be lost, so that attempts have their numbers again. `end`: null: none. */
  restart(end: string | null): void {
    this.#stages.clear();
    this.#end = end;
  }

  count(kind: string, route: string): number {
    return this.#counts.get(`${kind} ${route}`) ?? 0;
  }
}
