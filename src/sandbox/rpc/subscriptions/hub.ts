// Hub: distributes the chain's events to the subscriptions.
//
// Owned by the endpoint; sessions add and remove their watches. It listens to the chain once, and
// passes every block to every watch at each commitment, together with the slot events. An exception
// of a watch is logged and affects no other watch or the chain.

import type { ReportFault } from "../../../core/json-rpc/refusal.ts";
import type { Block, ChainEvent, Commitment, ExecutedTransaction } from "../../chain/types.ts";
import type { MethodContext } from "../method.ts";

export type FeedItem =
  | { readonly kind: "slot"; readonly slot: bigint; readonly parent: bigint; readonly root: bigint }
  /** The block may still be open. */
  | { readonly kind: "executed"; readonly slot: bigint; readonly transaction: ExecutedTransaction }
  /**
   * The block has reached the commitment. Called once for processed, then once for each other
   * commitment.
   */
  | { readonly kind: "block"; readonly commitment: Commitment; readonly block: Block };

export interface Watch {
  accept(item: FeedItem): void;
  /** Called once, when the watch is added. */
  begin?(): void;
}

export class SubscriptionHub {
  readonly context: MethodContext;
  readonly #report: ReportFault;
  readonly #watches = new Set<Watch>();
  readonly #leave: () => void;
  #nextId = 0;

  constructor(context: MethodContext, report: ReportFault) {
    this.context = context;
    this.#report = report;
    this.#leave = context.chain.subscribe((event) => this.#receive(event));
  }

  /** A number that no other subscription uses. */
  newId(): number {
    return this.#nextId++;
  }

  get count(): number {
    return this.#watches.size;
  }

  add(watch: Watch): void {
    this.#watches.add(watch);
    this.#guard(() => watch.begin?.());
  }

  remove(watch: Watch): void {
    this.#watches.delete(watch);
  }

  close(): void {
    this.#leave();
    this.#watches.clear();
  }

  #receive(event: ChainEvent): void {
    switch (event.kind) {
      case "slot":
      case "executed":
        this.#publish(event);
        break;
      case "block":
        this.#publish({ kind: "block", commitment: "processed", block: event.block });
        break;
      case "confirmed":
        this.#notifyBlock(event.slot, "confirmed");
        break;
      case "rooted":
        this.#notifyBlock(event.slot, "finalized");
        break;
      case "skipped":
      case "abandoned":
      case "restarted":
        break;
    }
  }

  #notifyBlock(slot: bigint, commitment: Commitment): void {
    const block = this.context.chain.block(slot);
    if (block) this.#publish({ kind: "block", commitment, block });
  }

  #publish(item: FeedItem): void {
    for (const watch of this.#watches) this.#guard(() => watch.accept(item));
  }

  #guard(action: () => void): void {
    try {
      action();
    } catch (thrown) {
      this.#report(thrown);
    }
  }
}
