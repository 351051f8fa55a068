// All commands of the command line by name. Each is one file, loaded only when it is called.
//
// Used by shredway.ts and write-man-page.ts. Tests compare the documentation with this list.

import type { Command } from "./terminal/command.ts";

export const commands: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import("./commands/start.ts")).start,
  send: async () => (await import("./send/send.ts")).send,
  stream: async () => (await import("./stream/stream.ts")).stream,
  replay: async () => (await import("./replay/replay.ts")).replay,
  listen: async () => (await import("./listen/listen.ts")).listen,
  race: async () => (await import("./race/race.ts")).race,
  land: async () => (await import("./commands/land.ts")).land,
  keys: async () => (await import("./commands/keys.ts")).keys,
  "public-keys": async () => (await import("./commands/public-keys.ts")).publicKeys,
  "signing-keys": async () => (await import("./commands/signing-keys.ts")).signingKeys,
  "verify-receipt": async () => (await import("./send/verify-receipt.ts")).verifyReceiptCommand,
  audit: async () => (await import("./commands/audit.ts")).audit,
  destinations: async () => (await import("./commands/destinations.ts")).destinations,
  sources: async () => (await import("./commands/sources.ts")).sources,
  migrate: async () => (await import("./commands/migrate.ts")).migrate,
  export: async () => (await import("./commands/export.ts")).exportCommand,
  import: async () => (await import("./commands/import.ts")).importCommand,
  service: async () => (await import("./commands/service.ts")).service,
  doctor: async () => (await import("./commands/doctor.ts")).doctor,
  bench: async () => (await import("./commands/bench.ts")).bench,
  completion: async () =>
    (await import("./completion/completion.ts")).completionCommand(allCommands),
};

export function allCommands(): Promise<Command[]> {
  return Promise.all(Object.values(commands).map((load) => load()));
}
