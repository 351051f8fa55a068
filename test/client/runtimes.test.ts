// The client outside Node: bundled for browsers, it needs only web APIs.

import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createContext, runInContext } from "node:vm";
import { build } from "esbuild";
import { expect, it } from "vitest";
import { GatewayRun } from "../support/gateway/gateway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

it("runs with only fetch, timers and URL", async () => {
  const gateway = await GatewayRun.open();
  const bundled = await build({
    entryPoints: ["src/client/index.ts"],
    bundle: true,
    write: false,
    platform: "browser",
    format: "iife",
    globalName: "shredway",
  });
  const web = { fetch, AbortController, URL, setTimeout, clearTimeout, btoa };
  const context = createContext({ ...web, url: gateway.url() });
  const script = `${bundled.outputFiles[0]?.text}
    const client = new shredway.ShredwayClient({ url });
    Promise.all([client.getHealth(), client.getTipAccounts()]);`;
  const [health, accounts] = await runInContext(script, context);
  expect(health).toBe("ok");
  expect(accounts.length).toBe(2);
});

it("uses only web types", () => {
  const folder = temporaryFolder();
  const path = join(folder, "tsconfig.json");
  const compilerOptions = { lib: ["ES2023", "DOM"], types: [], skipLibCheck: false };
  const file = {
    extends: resolve("tsconfig.json"),
    compilerOptions,
    include: [resolve("src/client")],
    exclude: [resolve("src/client/quic")],
  };
  writeFileSync(path, JSON.stringify(file));
  const { stdout, status } = spawnSync(resolve("node_modules/.bin/tsc"), ["-p", path]);
  expect(stdout.toString()).toBe("");
  expect(status).toBe(0);
});
