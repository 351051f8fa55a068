// The rows of several nodes in memory. Each change is atomic, as in a database.

import { onNewsOf } from "../../../src/platform/store/topics.ts";
import type { Registration } from "../../../src/shreds/registrations/registration-types.ts";
import type { CountedTip, TierEvent, TierState } from "../../../src/shreds/tiers/types.ts";
import { applied, type Saved } from "./memory-tier-store.ts";
import type { Rows, Stores } from "./simulation.ts";

function countedOf(row: Registration): CountedTip[] {
  const { state, countedOrder, countedLamports, accountId, registeredMs, settledMs } = row;
  if (state !== "counted" || countedOrder === null || countedLamports === null) return [];
  const countedMs = settledMs ?? 0;
  return [{ order: countedOrder, accountId, lamports: countedLamports, registeredMs, countedMs }];
}

export class MemoryRows implements Rows {
  readonly registrations = new Map<string, Registration>();
  epoch = 0n;
  checkpoint = 0n;
  saved: Saved | null = null;
  readonly #numbers = new Map<string, bigint>();

  idle(): Promise<void> {
    return Promise.resolve();
  }

  get counted(): CountedTip[] {
    return [...this.registrations.values()].flatMap(countedOf);
  }

  connect(driver: Parameters<Rows["connect"]>[0], tell: Parameters<Rows["connect"]>[1]): Stores {
    const at = <T>(work: () => T): Promise<T> => Promise.resolve().then(work);
    const put = (row: Registration): void => {
      const { signature, countedOrder } = row;
      const isTaken = this.counted.some(({ order }) => order === countedOrder);
      if (countedOrder !== null && isTaken) throw new Error(`order ${countedOrder} came twice`);
      this.registrations.set(signature, row);
    };
    const pages = (rows: readonly Registration[]) =>
      rows.toSorted(
        (a, b) => a.registeredMs - b.registeredMs || (a.signature < b.signature ? -1 : 1),
      );
    const pending = () => [...this.registrations.values()].filter((row) => row.state === "pending");
    return {
      tiers: {
        takeOver: () =>
          at(() => {
            this.epoch++;
            tell(["tiers"]);
            return this.epoch;
          }),
        epoch: () => at(() => this.epoch),
        load: () =>
          at(() => this.saved && { ...this.saved, states: [...this.saved.states.values()] }),
        checkpoint: (checkpoint, epoch) =>
          at(() => {
            if (epoch !== this.epoch) return false;
            this.saved = applied(this.saved, checkpoint);
            this.checkpoint++;
            for (const { accountId } of checkpoint.states) {
              this.#numbers.set(accountId, this.checkpoint);
            }
            const moved = checkpoint.events.filter(({ from, to }) => from !== to);
            const news = new Set(moved.map(({ accountId }) => accountId));
            const states = checkpoint.states.filter(({ accountId }) => news.has(accountId));
            const texts = states.map(
              ({ accountId, tier, eventCount }) =>
                `tiers ${accountId} ${tier ?? "-"} ${eventCount}`,
            );
            tell(texts.length > 0 ? texts : ["tiers"]);
            return true;
          }),
        statesChangedAfter: (number) =>
          at(() => {
            const { epoch, checkpoint } = this;
            const all: TierState[] = [...(this.saved?.states.values() ?? [])];
            const isNew = ({ accountId }: TierState): boolean =>
              number === null || (this.#numbers.get(accountId) ?? 0n) > number;
            return { epoch, checkpoint, states: all.filter(isNew) };
          }),
        onNews: (listener) =>
          onNewsOf(driver, "tiers", (texts) => {
            const readable = texts?.filter((text) => text !== "");
            listener(
              readable?.map((text) => {
                const [accountId = "", tier = "", count = ""] = text.split(" ");
                return { accountId, tier: tier === "-" ? null : tier, eventCount: BigInt(count) };
              }) ?? null,
            );
          }),
        countedAfter: (order, limit) =>
          at(() =>
            this.counted
              .filter((tip) => tip.order > order)
              .toSorted((a, b) => Number(a.order - b.order))
              .slice(0, limit),
          ),
        leavingAfter: (behind, untilMs, limit) =>
          at(() =>
            this.counted
              .filter(
                ({ registeredMs, order }) =>
                  registeredMs <= untilMs &&
                  (registeredMs > behind.registeredMs ||
                    (registeredMs === behind.registeredMs && order > behind.order)),
              )
              .toSorted((a, b) => a.registeredMs - b.registeredMs || Number(a.order - b.order))
              .slice(0, limit),
          ),
        events: (accountId, before, limit) =>
          at(() => {
            const events: readonly TierEvent[] = this.saved?.events.get(accountId) ?? [];
            return events
              .filter(({ number }) => before === null || number < before)
              .toReversed()
              .slice(0, limit);
          }),
      },
      registrations: {
        add: (row) =>
          at(() => {
            if (this.registrations.has(row.signature)) return false;
            put(row);
            tell([`registrations ${row.signature}`]);
            return true;
          }),
        addCounted: (row, epoch) =>
          at(() => {
            if (epoch !== this.epoch) return null;
            if (this.registrations.has(row.signature)) return false;
            put(row);
            return true;
          }),
        settle: ({ signature }, settlement, epoch) =>
          at(() => {
            if (epoch !== this.epoch) return null;
            const row = this.registrations.get(signature);
            if (row?.state !== "pending") return false;
            put({ ...row, ...settlement });
            tell([`registrations ${signature}`]);
            return true;
          }),
        claim: () => Promise.reject(new Error("expected no claim")),
        claimable: () => Promise.reject(new Error("expected no claim")),
        hasOrder: (order) => at(() => this.counted.some((tip) => tip.order === order)),
        owners: (signatures) =>
          at(() => {
            const rows = signatures.flatMap((one) => this.registrations.get(one) ?? []);
            return new Map(rows.map((row) => [row.signature, row.accountId]));
          }),
        pending: (behind, limit) =>
          at(() => {
            const rows = pages(pending());
            const from = rows.findIndex(
              ({ registeredMs, signature }) =>
                !behind ||
                registeredMs > behind.registeredMs ||
                (registeredMs === behind.registeredMs && signature > behind.signature),
            );
            return from < 0 ? [] : rows.slice(from, from + limit);
          }),
        pendingOf: (signatures) =>
          at(() => pending().filter(({ signature }) => signatures.includes(signature))),
        onNews: (listener) => onNewsOf(driver, "registrations", listener),
        ofAccount: (accountId) =>
          at(() => [...this.registrations.values()].filter((row) => row.accountId === accountId)),
        lastOrder: () => at(() => 0n),
      },
    };
  }
}
