// Leader check: verifies that a captured shred has its leader's signature.
//
// For captures, which the native relay does not process. Rules and names are those of
// native/relay/worker.cc and native/shred/merkle.h. Results are cached, so a set costs one
// verification.

import { createHash, createPublicKey, type KeyObject, verify } from "node:crypto";
import type { Shred } from "../../relay/data-plane/parse-shred.ts";
import { type LeaderSchedule, leaderOf } from "../../relay/leaders/schedule.ts";

type LeaderRefusal = "unknown_leader" | "root_mismatch" | "signature_invalid";

const leafPrefix = Buffer.from("\0SOLANA_MERKLE_SHREDS_LEAF", "latin1");
const nodePrefix = Buffer.from("\u0001SOLANA_MERKLE_SHREDS_NODE", "latin1");
const leafBegin = 64;
const entryBytes = 20;
const answersMax = 4096;

/** Returns the Merkle root of a shred's proof. */
function merkleRootOf(shred: Shred): Buffer {
  const proofBegin = shred.proof.byteOffset - shred.bytes.byteOffset;
  let node = createHash("sha256")
    .update(leafPrefix)
    .update(shred.bytes.subarray(leafBegin, proofBegin))
    .digest();
  let place = shred.index - shred.fecSetIndex + (shred.type === "code" ? 32 : 0);
  for (let at = 0; at < shred.proof.length; at += entryBytes) {
    const sibling = shred.proof.subarray(at, at + entryBytes);
    const own = node.subarray(0, entryBytes);
    const [left, right] = place % 2 === 0 ? [own, sibling] : [sibling, own];
    node = createHash("sha256").update(nodePrefix).update(left).update(right).digest();
    place >>= 1;
  }
  return node;
}

function keyOf(bytes: Uint8Array): KeyObject {
  const x = Buffer.from(bytes).toString("base64url");
  return createPublicKey({ format: "jwk", key: { kty: "OKP", crv: "Ed25519", x } });
}

export class LeaderCheck {
  readonly #schedule: LeaderSchedule;
  readonly #keys = new Map<Uint8Array, KeyObject>();
  /** Signature to the root that it signs. */
  readonly #roots = new Map<string, string>();

  constructor(schedule: LeaderSchedule) {
    this.#schedule = schedule;
  }

  /** Returns the reason of a refusal; undefined if the slot's leader signed the shred. */
  refusalOf(shred: Shred): LeaderRefusal | undefined {
    const leader = leaderOf(this.#schedule, shred.slot);
    if (!leader) return "unknown_leader";
    const root = merkleRootOf(shred);
    const signature = Buffer.from(shred.signature).toString("latin1");
    const known = this.#roots.get(signature);
    if (known !== undefined) return known === root.toString("latin1") ? undefined : "root_mismatch";
    if (!verify(null, root, this.#keyOf(leader), shred.signature)) return "signature_invalid";
    if (this.#roots.size === answersMax) this.#roots.clear();
    this.#roots.set(signature, root.toString("latin1"));
    return undefined;
  }

  #keyOf(leader: Uint8Array): KeyObject {
    const known = this.#keys.get(leader);
    if (known) return known;
    const key = keyOf(leader);
    this.#keys.set(leader, key);
    return key;
  }
}
