// API-key actions: list, rotate and revoke the keys of the session's account.
//
// Called by calls.ts. Rotation replaces the session's own key; the new key has the same scopes
// and ranges. A key can revoke only keys whose scopes it has. Every change is durable and
// effective when its promise resolves. The log records each change with the acting key's id,
// never with a key's text.

import { randomBytes } from "node:crypto";
import { quote, ShredwayError } from "../../core/errors.ts";
import type { Json } from "../../core/json-rpc/json-text.ts";
import { keyRandomBytes, keyState, newApiKey } from "../../gateway/accounts/api-keys.ts";
import type { ApiKey } from "../../gateway/accounts/types.ts";
import { count, field, optionsOf, requiredField, text } from "../../gateway/schema/shapes.ts";
import type { PortalDependencies, PortalGateway } from "./dependencies.ts";
import type { Session } from "./sessions.ts";
import type { KeyView, NewKeyView, UnusableKeyView } from "./types.ts";

/** The default is the same as that of `shredway keys rotate`. */
const overlapHoursDefault = 24;
const overlapHoursMax = 365 * 24;
const hourNs = 3_600_000_000_000n;

export interface Holder {
  readonly session: Session;
  readonly key: ApiKey;
}

export type ApiKeyActionsDependencies = Pick<
  PortalDependencies,
  "clock" | "log" | "keyStore" | "refreshKeys" | "gateway"
>;

export function timeText(ns: bigint): string {
  return new Date(Number(ns / 1_000_000n)).toISOString();
}

function timeOrNull(ns: bigint | null): string | null {
  return ns === null ? null : timeText(ns);
}

interface KeyViewOptions {
  readonly nowNs: bigint;
  readonly ownId: string;
  readonly gateway: Pick<PortalGateway, "lastUseNs" | "limitOf">;
}

function keyView(key: ApiKey, { nowNs, ownId, gateway }: KeyViewOptions): KeyView {
  const state = keyState(key, nowNs);
  const isExpiring = state === "in force" && key.expiresNs !== null;
  return {
    id: key.id,
    hint: key.hint,
    label: key.label,
    scopes: key.scopes,
    allowedRanges: key.allowedRanges,
    createdAt: timeText(key.createdNs),
    expiresAt: timeOrNull(key.expiresNs),
    revokedAt: timeOrNull(key.revokedNs),
    lastUsedAt: timeOrNull(gateway.lastUseNs(key.id)),
    ...gateway.limitOf(key),
    state: isExpiring ? "expiring" : state === "in force" ? "active" : state,
    isOwn: key.id === ownId,
  };
}

const readRotation = optionsOf("KeyRotation", {
  overlapHours: field(count(overlapHoursMax), {
    description: "hours for which the old key stays valid",
    absent: overlapHoursDefault,
  }),
}).reader("params");

const readRevocation = optionsOf("KeyRevocation", {
  id: requiredField(text(), "id of one of the account's keys"),
}).reader("params");

export class ApiKeyActions {
  readonly #dependencies: ApiKeyActionsDependencies;

  constructor(dependencies: ApiKeyActionsDependencies) {
    this.#dependencies = dependencies;
  }

  /** Lists the account's keys, newest first. */
  async list({ key }: Holder): Promise<KeyView[]> {
    const nowNs = this.#dependencies.clock.nowNs();
    const all = await this.#dependencies.keyStore.keys();
    return all
      .filter(({ accountId }) => accountId === key.accountId)
      .map((one) => keyView(one, { nowNs, ownId: key.id, gateway: this.#dependencies.gateway() }))
      .toReversed();
  }

  /**
   * The account's keys that this node cannot read, without their content. A revoked one is refused in any
   * case.
   */
  async unusable({ key }: Holder): Promise<UnusableKeyView[]> {
    const { unusable } = await this.#dependencies.keyStore.read();
    return unusable
      .filter(({ accountId, isRevoked }) => accountId === key.accountId && !isRevoked)
      .map(({ id }) => ({ id }));
  }

  /** This session continues with the new key. Other sessions of the old key end when it expires. */
  async rotate({ session, key }: Holder, given: Json | undefined): Promise<NewKeyView> {
    const { clock, log, keyStore, refreshKeys } = this.#dependencies;
    const { overlapHours } = readRotation(given);
    if (key.expiresNs !== null) {
      // A finder of an already rotated key must not obtain a new one with it.
      throw new ShredwayError(
        "value_invalid",
        `rotateKey: key ${quote(key.id)} was already rotated and is valid until ${timeText(key.expiresNs)}; ` +
          "sign in with the new key to rotate that one",
      );
    }
    const nowNs = clock.nowNs();
    const apiKey = newApiKey(key, randomBytes(keyRandomBytes), nowNs);
    const untilNs = nowNs + BigInt(overlapHours) * hourNs;
    // Another session may rotate it at this moment.
    await keyStore.replaceKey(key.id, untilNs, apiKey.key, { onlyOnce: true });
    await refreshKeys();
    session.keyId = apiKey.key.id;
    log.info(
      { account: key.accountName, key: key.id, newKey: apiKey.key.id, overlapHours },
      "portal: key rotated",
    );
    const view = { nowNs, ownId: apiKey.key.id, gateway: this.#dependencies.gateway() };
    return { key: keyView(apiKey.key, view), text: apiKey.text };
  }

  /** Revoking a revoked key changes nothing. */
  async revoke({ key }: Holder, given: Json | undefined): Promise<true> {
    const { clock, log, keyStore, refreshKeys } = this.#dependencies;
    const { id } = readRevocation(given);
    const all = await keyStore.keys();
    const found = all.find((one) => one.id === id && one.accountId === key.accountId);
    if (!found) {
      throw new ShredwayError(
        "key_unknown",
        `revokeKey: unknown key ${quote(id)}; expected the id of a key of this account`,
      );
    }
    const beyond = found.scopes.filter((scope) => !key.scopes.includes(scope));
    if (beyond.length > 0) {
      throw new ShredwayError(
        "scope_missing",
        `revokeKey: this session lacks the scopes ${beyond.join(", ")} of the key; sign in with a key that has them`,
      );
    }
    if (found.revokedNs !== null) return true;
    await keyStore.revokeKey(id, clock.nowNs());
    await refreshKeys();
    log.info({ account: key.accountName, key: key.id, revokedKey: id }, "portal: key revoked");
    return true;
  }
}
