// The subscribers that read the history first, as the relay needs them.
//
// Owned by stream-hub.ts. A subscriber that reads slowly gets no more of the history than its queue can take.

import { GrpcError } from "../../core/grpc/status.ts";
import {
  type RelayStreams,
  replayedBytes,
  replaysMax,
  type StreamMessage,
} from "../data-plane/relay-streams.ts";
import type { Resume } from "./resume.ts";

export class ReplayState {
  readonly id: number;
  readonly resume: Resume;
  /** The relay has its filters. */
  isBegun = false;
  receivedBytes = 0;

  constructor(id: number, resume: Resume) {
    this.id = id;
    this.resume = resume;
  }
}

export class StreamReplays<Owner> {
  readonly #streams: Pick<RelayStreams, "grantReplay">;
  readonly #owners = new Map<number, { readonly owner: Owner; readonly state: ReplayState }>();
  /** Ids of the places; a place gets a new id with each use. */
  readonly #ids = Array.from({ length: replaysMax }, (_, place) => place);

  constructor(streams: Pick<RelayStreams, "grantReplay">) {
    this.#streams = streams;
  }

  get count(): number {
    return this.#owners.size;
  }

  /** Throws GrpcError "RESOURCE_EXHAUSTED". */
  add(owner: Owner, resume: Resume): ReplayState {
    const place = this.#ids.findIndex((id) => !this.#owners.has(id));
    if (place < 0) {
      throw new GrpcError(
        "RESOURCE_EXHAUSTED",
        `replays: expected at most ${replaysMax} at once; retry later`,
      );
    }
    const last = this.#ids[place] ?? 0;
    const next = last + replaysMax;
    const id = next > 0xffff ? replaysMax + place : next;
    this.#ids[place] = id;
    const state = new ReplayState(id, resume);
    this.#owners.set(id, { owner, state });
    this.grant(state);
    return state;
  }

  ownerOf(id: number): Owner | undefined {
    return this.#owners.get(id)?.owner;
  }

  received(state: ReplayState, message: StreamMessage): void {
    state.receivedBytes += replayedBytes(message);
  }

  /** Lets the relay send as much as the subscriber's queue can take now. */
  grant(state: ReplayState): void {
    this.#streams.grantReplay(state.id, state.receivedBytes + state.resume.room());
  }

  grantAll(): void {
    for (const { state } of this.#owners.values()) this.grant(state);
  }

  remove({ id }: ReplayState): void {
    this.#owners.delete(id);
  }
}
