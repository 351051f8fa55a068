// `shredway keys`: creates, lists, rotates and revokes API keys.
//
// Works on the database, also while the service runs: the service picks a change up within a
// second. The text of a new key is written to stdout once and never stored.

import { randomBytes } from "node:crypto";
import { resolve } from "node:path";
import { systemClock } from "../../core/clock.ts";
import { isShredwayError, messageOf, quote, ShredwayError } from "../../core/errors.ts";
import {
  checkAccountName,
  checkLabel,
  checkLimits,
  checkRanges,
  defaultScopes,
  keyRandomBytes,
  keyState,
  newApiKey,
  parseScopes,
} from "../../gateway/accounts/api-keys.ts";
import { createKey } from "../../gateway/accounts/create-key.ts";
import { type ApiKey, scopes as allScopes } from "../../gateway/accounts/types.ts";
import { unusableKeyTexts } from "../../gateway/accounts/unusable-keys.ts";
import { isInUse } from "../../platform/store/data-folder.ts";
import { readAction } from "../terminal/actions.ts";
import { type Arguments, type Command, usageError } from "../terminal/command.ts";
import { table, toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import {
  defaultDirectory,
  locationOf,
  placeOf,
  refuseNewDefaultFolder,
  withReadStore,
  withStore,
} from "./store-command.ts";

const defaultOverlap = "24h";
const overlapDaysMax = 365;
const secondNs = 1_000_000_000n;

const actions = {
  create: { help: "create a key, and an account of that name if none exists" },
  list: { help: "list every key with its state, scopes and limits, never the key itself" },
  rotate: { argument: "ID", help: "replace a key; the old key stays valid during the overlap" },
  revoke: { argument: "ID", help: "invalidate a key immediately and permanently" },
} as const;

const ofCreate = { actions: ["create"] } as const;

const options = {
  account: {
    ...ofCreate,
    value: "NAME",
    help: "the owner of the key: 1 to 64 characters on one line",
  },
  label: { ...ofCreate, value: "TEXT", help: "a description" },
  scopes: {
    ...ofCreate,
    value: "LIST",
    choices: allScopes,
    isList: true,
    help: `some of ${allScopes.join(",")} (default ${defaultScopes.join(",")})`,
  },
  rate: {
    ...ofCreate,
    value: "N",
    help: "calls per second (default: gateway.requestsPerSecond)",
  },
  burst: { ...ofCreate, value: "N", help: "burst size in calls (default: gateway.burst)" },
  allow: { ...ofCreate, value: "LIST", help: "permitted addresses and ranges (default: all)" },
  overlap: {
    actions: ["rotate"],
    value: "TIME",
    help: `how long the old key stays valid, for example 30m, 24h, 7d (default ${defaultOverlap})`,
  },
  config: { value: "FILE", help: "the service's configuration, for its database" },
  data: { value: "DIRECTORY", help: `the data folder (default ${defaultDirectory})` },
  json: { help: "print one JSON object" },
} satisfies Command["options"];

export const keys: Command = {
  name: "keys",
  summary: "create, list, rotate and revoke API keys",
  usage: [
    "keys create --account NAME [--label TEXT] [--scopes LIST] [--rate N] [--burst N] [--allow LIST] [--config FILE | --data DIRECTORY] [--json]",
    "keys list [--config FILE | --data DIRECTORY] [--json]",
    "keys rotate ID [--overlap TIME] [--config FILE | --data DIRECTORY] [--json]",
    "keys revoke ID [--config FILE | --data DIRECTORY] [--json]",
  ],
  description: `
Manages the API keys of the gateway, in the service's database. A key is shown only once, when it is
created; the database stores its SHA-256. A running service picks changes up within a second. Name its
configuration or its data folder: without both, the command uses ${defaultDirectory} if a database is there.`,
  actions,
  options,
  examples: [
    "shredway keys create --account trading --scopes submit,batch,read",
    "shredway keys create --account web --allow 192.0.2.0/24,2001:db8::/32 --rate 50",
    "shredway keys list --config shredway.yaml",
    "shredway keys rotate k_4f1a09c2d3e5 --overlap 1h",
    "shredway keys revoke k_4f1a09c2d3e5 --json",
  ],
  run,
};

function run(args: Arguments, terminal: Terminal): Promise<number> {
  const { action, argument: id } = readAction(args, {
    name: "keys",
    actions,
    options,
    argument: { what: "id of a key", example: "k_4f1a09c2d3e5" },
  });
  switch (action) {
    case "create":
      return create(args, terminal);
    case "list":
      return list(args, terminal);
    case "rotate":
      return rotate(args, terminal, id);
    case "revoke":
      return revoke(args, terminal, id);
  }
}

async function create(args: Arguments, terminal: Terminal): Promise<number> {
  const accountName = asUsage(() => checkAccountName(args.required("account", "trading")));
  const label = asUsage(() => checkLabel(args.text("label") ?? ""));
  const scopes = asUsage(() => parseScopes(args.text("scopes") ?? defaultScopes.join(",")));
  const limits = asUsage(() => checkLimits(countOf(args, "rate"), countOf(args, "burst")));
  const allowed = args.text("allow")?.split(",") ?? [];
  const allowedRanges = asUsage(() => checkRanges(allowed));
  refuseNewDefaultFolder(args);
  return withStore(args, terminal, false, async (store) => {
    const keyOptions = { accountName, label, scopes, allowedRanges, ...limits };
    const chance = { random: randomBytes(keyRandomBytes), nowNs: systemClock.nowNs() };
    const { text, key } = await createKey(store.keys, keyOptions, chance);
    showNew(args, terminal, { text, key, old: null });
  });
}

function list(args: Arguments, terminal: Terminal): Promise<number> {
  return withReadStore(args, terminal, async (store) => {
    const { keys: all, unusable } = await store.keys.read();
    const nowNs = systemClock.nowNs();
    if (args.flag("json")) {
      const listed = all.map((key) => openFields(key, nowNs));
      terminal.line(toJson({ keys: listed, ...(unusable.length > 0 && { unusable }) }));
      return;
    }
    for (const text of unusableKeyTexts(unusable, [])) terminal.note(`warning: ${text}`);
    if (all.length === 0)
      terminal.note("no keys yet; create one: shredway keys create --account NAME");
    else for (const line of listLines(all, nowNs)) terminal.line(line);
  });
}

function rotate(args: Arguments, terminal: Terminal, id: string): Promise<number> {
  const overlapNs = parseOverlap(args.text("overlap") ?? defaultOverlap);
  return withStore(args, terminal, true, async (store) => {
    const nowNs = systemClock.nowNs();
    const old = (await store.keys.keys()).find((key) => key.id === id);
    const state = old && keyState(old, nowNs);
    if (!old || state !== "in force") {
      const got = state === undefined ? "" : `, which is ${state}`;
      throw new ShredwayError(
        "key_unknown",
        `cannot rotate ${quote(id)}${got}; expected the id of a valid key (list them with shredway keys list)`,
      );
    }
    const { text, key } = newApiKey(old, randomBytes(keyRandomBytes), nowNs);
    await store.keys.replaceKey(id, nowNs + overlapNs, key);
    const after = (await store.keys.keys()).find((each) => each.id === id) ?? old;
    showNew(args, terminal, { text, key, old: after });
  });
}

function revoke(args: Arguments, terminal: Terminal, id: string): Promise<number> {
  return withStore(args, terminal, true, async (store) => {
    await store.keys.revokeKey(id, systemClock.nowNs());
    if (args.flag("json")) terminal.line(toJson({ id, state: "revoked" }));
    else terminal.line(`revoked ${id}`);
  });
}

interface NewKey {
  readonly text: string;
  readonly key: ApiKey;
  /** The key that the new one replaces. */
  readonly old: ApiKey | null;
}

function showNew(args: Arguments, terminal: Terminal, { text, key, old }: NewKey): void {
  const nowNs = systemClock.nowNs();
  const location = locationOf(args);
  const database = placeOf(location);
  const isUnused = location.postgres === undefined && isInUse(location.directory) === false;
  if (args.flag("json")) {
    const replaced = old && { replaces: openFields(old, nowNs) };
    const use = location.postgres === undefined && { isServiceRunning: !isUnused };
    terminal.line(toJson({ key: text, ...openFields(key, nowNs), ...replaced, database, ...use }));
    return;
  }
  terminal.line(`key      ${text}`);
  terminal.line(`id       ${key.id}`);
  terminal.line(`account  ${key.accountName}`);
  terminal.line(`scopes   ${key.scopes.join(",")}`);
  if (old) terminal.line(`replaces ${old.id}, valid until ${timeText(old.expiresNs ?? 0n)}`);
  terminal.line(`database ${database}`);
  terminal.note("The key is shown only once. Store it now.");
  if (isUnused) {
    terminal.note(
      "warning: no running service uses this database; the key works only in a service whose " +
        `data.directory is ${resolve(location.directory)}`,
    );
  }
}

/** Fields that may be shown at any time. */
function openFields(key: ApiKey, nowNs: bigint): object {
  return {
    id: key.id,
    account: key.accountName,
    label: key.label,
    hint: key.hint,
    state: keyState(key, nowNs),
    scopes: key.scopes,
    requestsPerSecond: key.requestsPerSecond,
    burst: key.burst,
    allowedRanges: key.allowedRanges,
    created: timeText(key.createdNs),
    expires: key.expiresNs === null ? null : timeText(key.expiresNs),
    revoked: key.revokedNs === null ? null : timeText(key.revokedNs),
  };
}

function listLines(all: readonly ApiKey[], nowNs: bigint): string[] {
  const titles = ["id", "account", "key", "state", "scopes", "rate", "burst", "from", "label"];
  const rows = all.map((key) => {
    const state = keyState(key, nowNs);
    const until = state === "in force" && key.expiresNs !== null;
    return [
      key.id,
      key.accountName,
      `${key.hint}…`,
      until ? `until ${timeText(key.expiresNs)}` : state,
      key.scopes.join(","),
      String(key.requestsPerSecond ?? "default"),
      String(key.burst ?? "default"),
      key.allowedRanges.join(",") || "anywhere",
      key.label,
    ];
  });
  return table(
    titles.map((title) => ({ title, right: title === "rate" || title === "burst" })),
    rows,
  );
}

function timeText(ns: bigint): string {
  return new Date(Number(ns / 1_000_000n)).toISOString();
}

function countOf(args: Arguments, name: string): number | null {
  return args.integer(name, { min: 1, max: 1_000_000 }) ?? null;
}

/** Reports a value that a rule refuses as wrong usage. */
function asUsage<T>(check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (isShredwayError(error, "value_invalid")) {
      throw usageError(messageOf(error));
    }
    throw error;
  }
}

function parseOverlap(text: string): bigint {
  const seconds: Readonly<Record<string, bigint>> = { s: 1n, m: 60n, h: 3600n, d: 86_400n };
  const [, digits, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const overlap = BigInt(digits ?? 0) * (seconds[unit ?? ""] ?? 0n);
  if (digits === undefined || overlap > BigInt(overlapDaysMax) * 86_400n) {
    throw usageError(
      `--overlap: invalid time ${quote(text)}; expected for example 0s, 30m, 24h or 7d, at most ${overlapDaysMax}d`,
    );
  }
  return overlap * secondNs;
}
