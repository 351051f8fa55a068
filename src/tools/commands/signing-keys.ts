// `shredway signing-keys`: lists the keys that sign receipts and tip statistics, and replaces this node's key.
//
// Works on the service's database and data folder, also while the service runs, which follows within a
// second. The private key stays in its file.

import { hostname } from "node:os";
import { systemClock } from "../../core/clock.ts";
import { nodeNameOf } from "../../core/configuration/node-name.ts";
import type { StoredSigningKey } from "../../gateway/receipts/types.ts";
import { nextSigningKey, signingKeyPath } from "../../platform/solana/signing-key-file.ts";
import { readAction } from "../terminal/actions.ts";
import type { Arguments, Command } from "../terminal/command.ts";
import { table, toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import {
  configOf,
  defaultDirectory,
  locationOf,
  withReadStore,
  withStore,
} from "./store-command.ts";

const actions = {
  list: { help: "list the published keys of all nodes, oldest first" },
  rotate: { help: "replace the private key of this node; earlier public keys stay published" },
} as const;

const options = {
  config: { value: "FILE", help: "the service's configuration, for its database and data folder" },
  data: { value: "DIRECTORY", help: `the data folder (default ${defaultDirectory})` },
  json: { help: "print one JSON object" },
} satisfies Command["options"];

export const signingKeys: Command = {
  name: "signing-keys",
  summary: "list and rotate the keys that sign receipts and tip statistics",
  usage: [
    "signing-keys list [--config FILE | --data DIRECTORY] [--json]",
    "signing-keys rotate [--config FILE | --data DIRECTORY] [--json]",
  ],
  description: `
Manages the Ed25519 keys of signed receipts and tip statistics. Each node has one private key, in the file
signing-key.pem of its data folder; the database contains the public keys. Run rotate on the node itself: it
publishes a new public key, then replaces the file. A running service uses the new key within a second. Receipts
that an earlier key signed can still be verified, because public keys are never deleted.`,
  actions,
  options,
  examples: [
    "shredway signing-keys list --config shredway.yaml",
    "shredway signing-keys rotate --config shredway.yaml",
  ],
  run,
};

function run(args: Arguments, terminal: Terminal): Promise<number> {
  const { action } = readAction(args, { name: "signing-keys", actions, options });
  return action === "list" ? list(args, terminal) : rotate(args, terminal);
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

function shown({ kid, node, createdMs, retiredMs }: StoredSigningKey) {
  return {
    kid,
    node: node === "" ? null : node,
    created: timeText(createdMs),
    retired: retiredMs === null ? null : timeText(retiredMs),
  };
}

function list(args: Arguments, terminal: Terminal): Promise<number> {
  return withReadStore(args, terminal, async (store) => {
    const keys = (await store.signingKeys.all()).map(shown);
    if (args.flag("json")) {
      terminal.line(toJson({ signingKeys: keys }));
      return;
    }
    if (keys.length === 0) {
      terminal.note("no signing keys yet; the service creates one at its first start");
      return;
    }
    const columns = ["key", "node", "created", "retired"].map((title) => ({ title }));
    const rows = keys.map(({ kid, node, created, retired }) => [
      kid,
      node ?? "",
      created,
      retired ?? "in use",
    ]);
    for (const line of table(columns, rows)) terminal.line(line);
  });
}

/** As the service names itself in the database. */
function nodeOf(args: Arguments): string {
  const { postgres, node } = configOf(args)?.data ?? {};
  return postgres === undefined ? "" : nodeNameOf(node, hostname());
}

function rotate(args: Arguments, terminal: Terminal): Promise<number> {
  const { directory } = locationOf(args);
  const node = nodeOf(args);
  return withStore(args, terminal, true, async (store) => {
    const next = nextSigningKey(directory);
    const { kid, publicKey } = next.key;
    const createdMs = Number(systemClock.nowNs() / 1_000_000n);
    const stored = { kid, publicKey, node, createdMs };
    // In this order, no key signs before it is published, however the command ends.
    await store.signingKeys.add(stored);
    next.install();
    await store.signingKeys.use(stored);
    if (args.flag("json")) terminal.line(toJson({ kid, file: signingKeyPath(directory) }));
    else terminal.line(`new signing key ${kid} in ${signingKeyPath(directory)}`);
  });
}
