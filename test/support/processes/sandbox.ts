// A whole sandbox for one test: ports chosen by the kernel, its own folder, no log.

import { systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { openSandbox, type SandboxChoice } from "../../../src/sandbox/open-sandbox.ts";
import type { Sandbox } from "../../../src/sandbox/sandbox.ts";
import { closing } from "../closing.ts";
import { temporaryFolder } from "../temporary-folder.ts";

/**
 * A started sandbox. `http`: for clients that need the next port as well. `data`: the folder of an earlier
 * sandbox.
 */
export async function runningSandbox(
  http = "127.0.0.1:0",
  choices: Partial<
    Pick<SandboxChoice, "tierClock" | "data" | "quic" | "streams" | "shredstream">
  > = {},
): Promise<Sandbox> {
  const data = choices.data ?? temporaryFolder(); // before its users
  const sandbox = closing(
    await openSandbox({
      udp: "127.0.0.1:0",
      rpc: "127.0.0.1:0",
      http,
      data,
      log: createLogger({ level: "silent" }),
      clock: systemClock,
      ...choices,
    }),
  );
  await sandbox.start();
  return sandbox;
}
