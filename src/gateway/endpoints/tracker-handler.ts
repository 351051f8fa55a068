// /api/alt_validators and /api/next_alt_validator: the alternative partners that lead; public.
//
// Called by gateway.ts. Not rate-limited: like /gethealth, a response costs microseconds and comes
// from memory. It does not use JSON-RPC.

import type { NextAltValidator } from "../../client/responses.ts";
import { messageOf, quote } from "../../core/errors.ts";
import { writeJson } from "../../core/json-rpc/json-text.ts";
import { u64Max } from "../../core/primitives.ts";
import type { HttpHead, HttpResponse } from "../http/types.ts";
import type { Tracker } from "../tracker/types.ts";
import { documentHeaders, plainRefusal } from "./answers.ts";
import { checkNames, keyName, Query } from "./query.ts";

export const validatorsPath = "/api/alt_validators";
export const nextPath = "/api/next_alt_validator";
const slotPrefix = `${nextPath}/`;
/** The path as the list of paths shows it. */
export const slotPath = `${slotPrefix}{slot}`;

export function isSlotPath(path: string): boolean {
  return path.startsWith(slotPrefix);
}

/** Parses decimal digits; the text is neither decoded nor trimmed. */
function readSlot(text: string): bigint | null {
  if (!/^[0-9]{1,20}$/.test(text)) return null;
  const slot = BigInt(text);
  return slot <= u64Max ? slot : null;
}

/** The paths have no parameters. A key is permitted and ignored. */
function refusalOf({ query }: HttpHead): HttpResponse | undefined {
  try {
    checkNames(Query.of(query), [keyName]);
    return undefined;
  } catch (thrown) {
    return plainRefusal("value_invalid", messageOf(thrown));
  }
}

function answerOf(head: HttpHead, value: unknown): HttpResponse {
  return {
    status: 200,
    headers: documentHeaders(head),
    body: writeJson(value),
  };
}

export class TrackerHandler {
  readonly #tracker: Tracker;

  constructor(tracker: Tracker) {
    this.#tracker = tracker;
  }

  /** Responds to GET and HEAD /api/alt_validators. */
  answerValidators(head: HttpHead): HttpResponse {
    return refusalOf(head) ?? answerOf(head, this.#tracker.members());
  }

  /** Responds to GET and HEAD /api/next_alt_validator. */
  answerNext(head: HttpHead): HttpResponse {
    return this.#answerNext(head, null);
  }

  /** Responds to GET and HEAD /api/next_alt_validator/{slot}. */
  answerAt(head: HttpHead): HttpResponse {
    const text = head.path.slice(slotPrefix.length);
    const slot = readSlot(text);
    if (slot !== null) return this.#answerNext(head, slot);
    const expected = `expected an integer from 0 to ${u64Max} in decimal digits`;
    return plainRefusal("value_invalid", `slot: invalid value ${quote(text)}; ${expected}`);
  }

  #answerNext(head: HttpHead, slot: bigint | null): HttpResponse {
    const refusal = refusalOf(head);
    if (refusal) return refusal;
    const next = this.#tracker.next(slot);
    if (!next) {
      const from = slot === null ? "the current slot" : `slot ${slot}`;
      const message = `no alternative partner is known to lead at or after ${from}`;
      return plainRefusal("leader_unknown", message);
    }
    const { pubkey, leaderSlot, contextSlot } = next;
    const answer: NextAltValidator = { pubkey, leader_slot: leaderSlot, context_slot: contextSlot };
    return answerOf(head, answer);
  }
}
