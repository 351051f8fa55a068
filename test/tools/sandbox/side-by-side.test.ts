// Two sandboxes at the same time, with no option for ShredStream: both show both of its directions.

import { expect, it } from "vitest";
import { Shredway } from "../../support/processes/shredway.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

it("shows a source and a subscriber of ShredStream in each sandbox", async () => {
  const run = async (): Promise<string> => {
    const names = ["--udp", "--rpc", "--quic", "--streams", "--http"];
    const ports = names.flatMap((name) => [name, "127.0.0.1:0"]);
    const sandbox = Shredway.run("start", ...ports, "--data", temporaryFolder());
    const [, address = ""] = await sandbox.printed(/^ready .* shredstream=(\S+) rpc=/m);
    await sandbox.printed(/ source jito at http:\/\/127\.0\.0\.1:\d+$/m);
    await sandbox.printed(/^ {2}subscribers .*subscriber\.json; one runs here: proxy$/m);
    await sandbox.printed(/ shredstream received [1-9].* verified by subscriber [1-9]/);
    sandbox.signal("SIGINT");
    const { code, stdout } = await sandbox.end();
    expect(code).toBe(0);
    expect(stdout).toMatch(/^ {2}proxy \(tier-1\) verified [1-9]/m);
    expect(stdout).toContain("Duplicates at the destinations: 0.");
    return address;
  };
  const addresses = await Promise.all([run(), run()]);
  expect(new Set(addresses).size).toBe(2);
});
