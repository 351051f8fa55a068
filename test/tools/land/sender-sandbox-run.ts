// A sender sandbox for one test, with the arguments of `shredway land` that use it from outside.

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { SenderSandbox } from "../../../src/sandbox/sender-sandbox.ts";
import { closing } from "../../support/closing.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

export interface SenderSandboxRun {
  readonly sandbox: SenderSandbox;
  readonly folder: string;
  /** Senders, node and payer. */
  readonly args: readonly string[];
}

export async function senderSandboxRun(): Promise<SenderSandboxRun> {
  const folder = temporaryFolder();
  const log = createLogger({ level: "silent" });
  const sandbox = closing(await SenderSandbox.open({ clock: systemClock, log }));
  sandbox.start();
  const payer = join(folder, "payer.json");
  const { seed, publicKey } = sandbox.payer;
  writeFileSync(payer, JSON.stringify([...seed, ...publicKey]), { mode: 0o600 });
  const senders = sandbox.senders.flatMap(({ name, url, dialect }) => [
    "--sender",
    `${name}=${url} dialect=${dialect} tip=10000 tip-to=${sandbox.tipAddress}`,
  ]);
  return { sandbox, folder, args: [...senders, "--rpc", sandbox.nodeUrl, "--payer", payer] };
}
