// One service per folder at a time; commands may use it concurrently.

import { expect, it } from "vitest";
import { systemClock } from "../../../src/core/clock.ts";
import { createLogger } from "../../../src/core/log.ts";
import { Store } from "../../../src/platform/store/store.ts";
import { closing } from "../../support/closing.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const log = createLogger({ level: "silent" });

it("rejects a second service, admits commands, and is free after the first one ends", async () => {
  const directory = temporaryFolder();
  const open = (isService: boolean) =>
    Store.open({ directory, clock: systemClock, log, isService });
  const first = await open(true);
  await expect(open(true)).rejects.toThrow(/another service uses the data folder/);
  const command = closing(await open(false));
  await command.keys.ensureAccount("a", 1n);
  await first.close();
  closing(await open(true));
});
