// `shredway public-keys`: registers Ed25519 public keys, and signs registrations with a key file.
//
// `sign` works without a database: its output is the parameter of registerPublicKey. All other actions work
// on the service's database, also while the service runs. The private key stays in the process.

import { systemClock } from "../../core/clock.ts";
import { quote, reworded, ShredwayError } from "../../core/errors.ts";
import { keyState } from "../../gateway/accounts/api-keys.ts";
import {
  checkNewPublicKey,
  claimTextOf,
  proofMinutesMax,
} from "../../gateway/accounts/public-key-proof.ts";
import {
  type PublicKeyPurpose,
  publicKeyPurposes,
  purposeScopes,
  type RegisteredPublicKey,
} from "../../gateway/accounts/public-key-types.ts";
import {
  checkAddedPublicKey,
  publicKeysPerAccountMax,
  unknownPublicKey,
} from "../../gateway/accounts/public-keys.ts";
import type { ApiKey } from "../../gateway/accounts/types.ts";
import { unusableKeyTexts } from "../../gateway/accounts/unusable-keys.ts";
import { readKeyPair } from "../../platform/solana/key-file.ts";
import type { Store } from "../../platform/store/store.ts";
import { readAction } from "../terminal/actions.ts";
import { type Arguments, type Command, exitCodes, usageError } from "../terminal/command.ts";
import { table, toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { defaultDirectory, withReadStore, withStore } from "./store-command.ts";

const exampleKey = "4zvwRjXUKGfvwnParsHAS3HuSVzV5cA4McphgmoCtajS";
const exampleApiKey = "k_4f1a09c2d3e5";
const exampleAccount = "a_4f1a09c2d3e5";
const minutesDefault = 10;
const minuteMs = 60_000;
const accountPattern = /^a_[0-9a-f]{12}$/;

const actions = {
  list: { help: "list every public key with its account, purpose and API key" },
  add: { help: "register the public key of a key file, or one whose owner you know" },
  sign: { help: "print the signed registration for the method registerPublicKey" },
  remove: {
    argument: "KEY",
    help: "delete a public key; its connections are closed within a second",
  },
  history: { help: "list the registrations and removals, oldest first" },
} as const;

const options = {
  purpose: {
    actions: ["add", "sign"],
    value: "PURPOSE",
    choices: publicKeyPurposes,
    help: "tpu: submissions over QUIC; shredstream: a ShredStream proxy",
  },
  "api-key": {
    actions: ["add"],
    value: "ID",
    help: "id of the API key whose rights and limits the public key gets",
  },
  "key-file": {
    actions: ["add", "sign"],
    value: "FILE",
    help: "key pair in the format of Solana's tools; only its owner may read the file",
  },
  "public-key": {
    actions: ["add"],
    value: "KEY",
    help: "instead of --key-file, without a proof of possession",
  },
  account: { actions: ["sign"], value: "ID", help: "id of the account, from getPublicKeys" },
  minutes: {
    actions: ["sign"],
    value: "N",
    help: `validity of the signature, up to ${proofMinutesMax} (default ${minutesDefault})`,
  },
  config: { value: "FILE", help: "the service's configuration, for its database" },
  data: { value: "DIRECTORY", help: `the data folder (default ${defaultDirectory})` },
  json: { help: "print one JSON object" },
} satisfies Command["options"];

export const publicKeys: Command = {
  name: "public-keys",
  summary: "list, register, sign and remove Ed25519 public keys of accounts",
  usage: [
    "public-keys list [--config FILE | --data DIRECTORY] [--json]",
    "public-keys add --api-key ID --purpose PURPOSE (--key-file FILE | --public-key KEY) [--config FILE | --data DIRECTORY] [--json]",
    "public-keys sign --account ID --purpose PURPOSE --key-file FILE [--minutes N]",
    "public-keys remove KEY [--config FILE | --data DIRECTORY] [--json]",
    "public-keys history [--config FILE | --data DIRECTORY] [--json]",
  ],
  description: `
Manages the Ed25519 public keys that replace API keys in the certificates of QUIC clients and in the login
of ShredStream proxies. A running service picks changes up within a second. An account's owner needs no
database: sign prints the parameter of the method registerPublicKey.`,
  actions,
  options,
  examples: [
    `shredway public-keys sign --account ${exampleAccount} --purpose tpu --key-file id.json`,
    `shredway public-keys add --api-key ${exampleApiKey} --purpose shredstream --key-file id.json`,
    "shredway public-keys list --config shredway.yaml",
    `shredway public-keys remove ${exampleKey}`,
  ],
  run,
};

function run(args: Arguments, terminal: Terminal): Promise<number> {
  const { action, argument } = readAction(args, {
    name: "public-keys",
    actions,
    options,
    argument: { what: "public key", example: exampleKey },
  });
  switch (action) {
    case "list":
      return list(args, terminal);
    case "add":
      return add(args, terminal);
    case "sign":
      return sign(args, terminal);
    case "remove":
      return remove(args, terminal, argument);
    case "history":
      return history(args, terminal);
  }
}

function nowMs(): number {
  return Number(systemClock.nowNs() / 1_000_000n);
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

function purposeOf(args: Arguments): PublicKeyPurpose {
  const text = args.required("purpose", "tpu");
  const found = publicKeyPurposes.find((each) => each === text);
  if (found) return found;
  throw usageError(
    `--purpose: invalid value ${quote(text)}; expected one of ${publicKeyPurposes.join(", ")}`,
  );
}

function list(args: Arguments, terminal: Terminal): Promise<number> {
  return withReadStore(args, terminal, async (store) => {
    const { publicKeys: all, unusable } = await store.publicKeys.read();
    if (args.flag("json")) {
      const listed = all.map(shown);
      terminal.line(toJson({ publicKeys: listed, ...(unusable.length > 0 && { unusable }) }));
      return;
    }
    for (const text of unusableKeyTexts([], unusable)) terminal.note(`warning: ${text}`);
    if (all.length === 0) {
      terminal.note("no public keys yet; register one: shredway public-keys add --help");
      return;
    }
    const titles = ["public key", "account", "purpose", "API key", "registered"];
    const rows = all.map(({ publicKey, accountName, purpose, keyId, registeredMs }) => [
      publicKey,
      accountName,
      purpose,
      keyId,
      timeText(registeredMs),
    ]);
    const columns = titles.map((title) => ({ title }));
    for (const line of table(columns, rows)) terminal.line(line);
  });
}

/** The public key to register. A key file proves its possession. */
function publicKeyOf(args: Arguments): string {
  args.exclusive("key-file", "public-key");
  const file = args.text("key-file");
  if (file !== undefined) return readKeyPair(file).address;
  return checkNewPublicKey(args.required("public-key", exampleKey));
}

async function apiKeyOf(store: Store, id: string, purpose: PublicKeyPurpose): Promise<ApiKey> {
  const found = (await store.keys.keys()).find((key) => key.id === id);
  const scope = purposeScopes[purpose];
  const state = found ? keyState(found, systemClock.nowNs()) : "unknown";
  if (found && state === "in force" && found.scopes.includes(scope)) return found;
  const got = state === "in force" ? `one without the scope ${scope}` : `${state} key ${quote(id)}`;
  throw new ShredwayError(
    "key_unknown",
    `--api-key: expected the id of a valid API key with the scope ${scope}, got ${got} ` +
      "(list them with shredway keys list)",
  );
}

function add(args: Arguments, terminal: Terminal): Promise<number> {
  const id = args.required("api-key", exampleApiKey);
  const purpose = purposeOf(args);
  const publicKey = publicKeyOf(args);
  return withStore(args, terminal, true, async (store) => {
    const { accountId, accountName, id: keyId } = await apiKeyOf(store, id, purpose);
    const registeredMs = nowMs();
    const key = { publicKey, purpose, accountId, accountName, keyId, registeredMs };
    const actor = { keyId: null, nowMs: registeredMs };
    const answer = await store.publicKeys.add(key, actor, publicKeysPerAccountMax);
    checkAddedPublicKey(answer, publicKey);
    if (args.flag("json")) terminal.line(toJson(shown(key)));
    else terminal.line(`registered ${publicKey} for ${purpose} of account ${accountName}`);
  });
}

function sign(args: Arguments, terminal: Terminal): Promise<number> {
  const accountId = args.required("account", exampleAccount);
  if (!accountPattern.test(accountId)) {
    throw usageError(
      `--account: invalid value ${quote(accountId)}; expected the id of an account, for example ` +
        `${exampleAccount} (getPublicKeys returns it)`,
    );
  }
  const purpose = purposeOf(args);
  const minutes = args.integer("minutes", { min: 1, max: proofMinutesMax }) ?? minutesDefault;
  const pair = readKeyPair(args.required("key-file", "id.json"));
  const expiresAt = timeText(nowMs() + minutes * minuteMs);
  const claim = { publicKey: pair.address, purpose, expiresAt };
  const text = claimTextOf({ ...claim, accountId });
  const signature = Buffer.from(pair.sign(Buffer.from(text))).toString("base64");
  terminal.line(toJson({ ...claim, signature }));
  return Promise.resolve(exitCodes.ok);
}

function remove(args: Arguments, terminal: Terminal, publicKey: string): Promise<number> {
  return withStore(args, terminal, true, async (store) => {
    const stored = await store.publicKeys.read();
    const all = [...stored.publicKeys, ...stored.unusable];
    const found = all.find((each) => each.publicKey === publicKey);
    const actor = { keyId: null, nowMs: nowMs() };
    if (!found || !(await store.publicKeys.remove(found.accountId, publicKey, actor))) {
      const error = unknownPublicKey(publicKey);
      throw reworded(error, `${error.message} (list them with shredway public-keys list)`);
    }
    if (args.flag("json")) terminal.line(toJson({ publicKey, state: "removed" }));
    else terminal.line(`removed ${publicKey}`);
  });
}

function history(args: Arguments, terminal: Terminal): Promise<number> {
  return withReadStore(args, terminal, async (store) => {
    const names = new Map((await store.keys.accounts()).map(({ id, name }) => [id, name]));
    const events = (await store.publicKeys.events()).map((event) => ({
      at: timeText(event.atMs),
      account: names.get(event.accountId) ?? event.accountId,
      kind: event.kind,
      publicKey: event.publicKey,
      purpose: event.purpose,
      apiKey: event.keyId,
    }));
    if (args.flag("json")) {
      terminal.line(toJson({ events }));
      return;
    }
    const titles = ["time", "account", "event", "public key", "purpose", "by"];
    const rows = events.map((event) => [
      event.at,
      event.account,
      event.kind,
      event.publicKey,
      event.purpose,
      event.apiKey ?? "operator",
    ]);
    const columns = titles.map((title) => ({ title }));
    for (const line of table(columns, rows)) terminal.line(line);
  });
}

function shown({ publicKey, accountName, purpose, keyId, registeredMs }: RegisteredPublicKey) {
  return {
    publicKey,
    account: accountName,
    purpose,
    apiKey: keyId,
    registered: timeText(registeredMs),
  };
}
