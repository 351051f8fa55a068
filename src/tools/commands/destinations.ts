// `shredway destinations`: manages the destinations of accounts.
//
// Works on the database, also while the service runs: the service picks a change up within a
// second and sends challenges to a new destination. destination-rules.ts contains the rules.

import { randomBytes } from "node:crypto";
import { parseEndpoint } from "../../core/addresses/addresses.ts";
import { listenerReachedBy, readOwnAddresses } from "../../core/addresses/own-addresses.ts";
import { systemClock } from "../../core/clock.ts";
import { type Config, completeConfig, loadConfig } from "../../core/configuration/configuration.ts";
import { quote, reworded, ShredwayError } from "../../core/errors.ts";
import type { Account } from "../../gateway/accounts/types.ts";
import type { Store } from "../../platform/store/store.ts";
import {
  approved,
  checkAdded,
  checkDestination,
  type DestinationSettings,
  destinationSettingsOf,
  hasProof,
  type IsOwnListener,
  newDestination,
  pausedByOperator,
  resumed,
  unknownDestination,
} from "../../shreds/destinations/destination-rules.ts";
import type { AccountDestination } from "../../shreds/destinations/destination-types.ts";
import { readAction } from "../terminal/actions.ts";
import type { Arguments, Command } from "../terminal/command.ts";
import { table, toJson } from "../terminal/formatting.ts";
import type { Terminal } from "../terminal/terminal.ts";
import { defaultDirectory, withReadStore, withStore } from "./store-command.ts";

const exampleId = "d_4f1a09c2d3e5";
/** Maximum attempts of a change that conflicts with changes by a running service. */
const attemptsMax = 5;

const actions = {
  list: { help: "list every destination with its state and proof" },
  add: {
    help: "add a destination to an account; it receives only challenges until it is verified",
  },
  approve: { argument: "ID", help: "mark it as verified permanently; this ends every pause" },
  pause: { argument: "ID", help: "stop its shreds until resume, even if it is verified again" },
  resume: { argument: "ID", help: "end a pause; without a valid proof it still receives nothing" },
  remove: { argument: "ID", help: "delete it" },
} as const;

const options = {
  account: {
    actions: ["list", "add"],
    value: "NAME",
    help: "the owner of the destination; list shows only this account",
  },
  region: { actions: ["add"], value: "REGION", help: "a name of delivery.regions" },
  address: {
    actions: ["add"],
    value: "ADDRESS",
    help: "address and port, for example 192.0.2.1:9000",
  },
  config: {
    value: "FILE",
    help: "the service's configuration: database and permitted addresses",
  },
  data: {
    value: "DIRECTORY",
    help: `the data folder (default ${defaultDirectory}); add then uses the default settings`,
  },
  json: { help: "print one JSON object" },
} satisfies Command["options"];

export const destinations: Command = {
  name: "destinations",
  summary: "list, add, approve, pause, resume and remove destinations of accounts",
  usage: [
    "destinations list [--account NAME] [--config FILE | --data DIRECTORY] [--json]",
    "destinations add --account NAME --region REGION --address ADDRESS [--config FILE | --data DIRECTORY] [--json]",
    "destinations approve ID [--config FILE | --data DIRECTORY] [--json]",
    "destinations pause ID [--config FILE | --data DIRECTORY] [--json]",
    "destinations resume ID [--config FILE | --data DIRECTORY] [--json]",
    "destinations remove ID [--config FILE | --data DIRECTORY] [--json]",
  ],
  description: `
Manages the destinations of accounts, in the service's database. A running service picks changes up
within a second.`,
  actions,
  options,
  examples: [
    "shredway destinations list --config shredway.yaml",
    "shredway destinations add --account trading --region frankfurt --address 192.0.2.1:9000 --config shredway.yaml",
    `shredway destinations approve ${exampleId}`,
    `shredway destinations pause ${exampleId} --json`,
  ],
  run,
};

function run(args: Arguments, terminal: Terminal): Promise<number> {
  const { action, argument: id } = readAction(args, {
    name: "destinations",
    actions,
    options,
    argument: { what: "id of a destination", example: exampleId },
  });
  switch (action) {
    case "list":
      return list(args, terminal);
    case "add":
      return add(args, terminal);
    case "approve":
      return change(args, terminal, { id, step: approved });
    case "pause":
      return change(args, terminal, { id, step: pausedByOperator });
    case "resume":
      return change(args, terminal, { id, step: resumed });
    case "remove":
      return remove(args, terminal, id);
  }
}

function list(args: Arguments, terminal: Terminal): Promise<number> {
  const name = args.text("account");
  return withReadStore(args, terminal, async (store) => {
    const account = name === undefined ? null : await accountOf(store, name);
    const all = (await store.destinations.all()).filter(
      ({ accountId }) => account === null || accountId === account.id,
    );
    if (args.flag("json")) {
      terminal.line(toJson({ destinations: all.map(shown) }));
      return;
    }
    if (all.length === 0)
      terminal.note("no destinations yet; add one: shredway destinations add --help");
    else for (const line of listLines(all)) terminal.line(line);
  });
}

function add(args: Arguments, terminal: Terminal): Promise<number> {
  const name = args.required("account", "trading");
  const region = args.required("region", "frankfurt");
  args.required("address", "192.0.2.1:9000");
  const address = args.endpoint("address") ?? "";
  const { settings, isOwnListener } = settingsOf(args);
  const endpoint = checkDestination(region, address, settings, isOwnListener);
  return withStore(args, terminal, true, async (store) => {
    const account = await accountOf(store, name);
    const chance = { random: randomBytes(6), nowMs: nowMs() };
    const destination = newDestination(account, { region, endpoint }, chance);
    const { perAccountMax } = settings;
    const answer = await store.destinations.add(destination, perAccountMax);
    checkAdded(answer, destination, { perAccountMax, leases: 0 });
    show(args, terminal, destination);
  });
}

function change(
  args: Arguments,
  terminal: Terminal,
  {
    id,
    step,
  }: {
    readonly id: string;
    readonly step: (current: AccountDestination, nowMs: number) => AccountDestination;
  },
): Promise<number> {
  return withStore(args, terminal, true, async (store) => {
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const before = (await store.destinations.all()).find((each) => each.id === id);
      if (!before) throw unknown(id);
      const after = step(before, nowMs());
      if (after === before || (await store.destinations.update(after, before))) {
        show(args, terminal, after);
        return;
      }
    }
    const message = `destination ${id} was modified concurrently ${attemptsMax} times; run the command again`;
    throw new ShredwayError("store_failed", message);
  });
}

function remove(args: Arguments, terminal: Terminal, id: string): Promise<number> {
  return withStore(args, terminal, true, async (store) => {
    if (!(await store.destinations.remove(id))) throw unknown(id);
    if (args.flag("json")) terminal.line(toJson({ id, state: "removed" }));
    else terminal.line(`removed ${id}`);
  });
}

function unknown(id: string): ShredwayError {
  const error = unknownDestination(id);
  return reworded(error, `${error.message} (list them with shredway destinations list)`);
}

async function accountOf(store: Store, name: string): Promise<Account> {
  const account = (await store.keys.accounts()).find((each) => each.name === name);
  if (account) return account;
  throw new ShredwayError(
    "value_invalid",
    `--account: unknown account ${quote(name)}; expected an account's name (list them with shredway keys list)`,
  );
}

function nowMs(): number {
  return Number(systemClock.nowNs() / 1_000_000n);
}

interface AddRules {
  readonly settings: DestinationSettings;
  readonly isOwnListener: IsOwnListener;
}

/**
 * Rules for a new destination from the configuration file. A running service applies its own
 * rules.
 */
function settingsOf(args: Arguments): AddRules {
  const file = args.text("config");
  if (file === undefined) {
    const defaults = completeConfig({ relay: { shredVersion: 1, authentication: "off" } });
    // Without a configuration, private addresses are accepted here; the service may refuse them
    // later.
    const settings = { ...destinationSettingsOf(defaults), allowPrivate: true };
    return { settings, isOwnListener: () => false };
  }
  const own = readOwnAddresses();
  const config: Config = loadConfig(file, own);
  const listeners = [
    ...config.relay.listen,
    config.delivery.proof.listen,
    config.delivery.proof.listenIpv6,
  ].map((text) => parseEndpoint(text, { allowPortZero: true }));
  return {
    settings: destinationSettingsOf(config),
    isOwnListener: (endpoint) => listenerReachedBy(endpoint, listeners, own) !== undefined,
  };
}

function show(args: Arguments, terminal: Terminal, destination: AccountDestination): void {
  if (args.flag("json")) {
    terminal.line(toJson(shown(destination)));
    return;
  }
  terminal.line(`id       ${destination.id}`);
  terminal.line(`account  ${destination.accountName}`);
  terminal.line(`region   ${destination.region}`);
  terminal.line(`address  ${destination.address}`);
  terminal.line(`state    ${stateText(destination)}`);
  terminal.line(`proof    ${proofText(destination)}`);
}

function shown(destination: AccountDestination): object {
  return {
    id: destination.id,
    account: destination.accountName,
    region: destination.region,
    address: destination.address,
    state: destination.state,
    created: timeText(destination.createdMs),
    proved: timeText(destination.provedMs),
    provedBy: destination.provedBy,
    proofEnds: timeText(destination.proofEndsMs),
    paused: timeText(destination.pausedMs),
    pauseReason: destination.pauseReason,
    recovered: destination.recovered,
  };
}

function timeText(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

function stateText({ state, pauseReason }: AccountDestination): string {
  return pauseReason === null ? state : `${state} (${pauseReason})`;
}

function proofText(destination: AccountDestination): string {
  const { provedBy, proofEndsMs } = destination;
  if (provedBy === null) return "none";
  if (proofEndsMs === null) return `by ${provedBy}, permanent`;
  const word = hasProof(destination, nowMs()) ? "until" : "ended";
  return `by ${provedBy}, ${word} ${timeText(proofEndsMs)}`;
}

function listLines(all: readonly AccountDestination[]): string[] {
  const titles = ["id", "account", "region", "address", "state", "proof"];
  return table(
    titles.map((title) => ({ title })),
    all.map((each) => [
      each.id,
      each.accountName,
      each.region,
      each.address,
      stateText(each),
      proofText(each),
    ]),
  );
}
