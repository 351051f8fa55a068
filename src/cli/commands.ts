// Every command of the command line by its name; each is one file, loaded only when it is called.
//
// Called by shredway.ts. Tests hold the documents to it.

import type { Command } from "./command.ts";

export const commands: Readonly<Record<string, () => Promise<Command>>> = {
  start: async () => (await import("./start.ts")).start,
  replay: async () => (await import("./replay.ts")).replay,
  listen: async () => (await import("./listen.ts")).listen,
  race: async () => (await import("./race.ts")).race,
  keys: async () => (await import("./keys.ts")).keys,
  destinations: async () => (await import("./destinations.ts")).destinations,
  sources: async () => (await import("./sources.ts")).sources,
  migrate: async () => (await import("./migrate.ts")).migrate,
  export: async () => (await import("./export.ts")).exportCommand,
  import: async () => (await import("./import.ts")).importCommand,
  doctor: async () => (await import("./doctor.ts")).doctor,
  bench: async () => (await import("./bench.ts")).bench,
};
