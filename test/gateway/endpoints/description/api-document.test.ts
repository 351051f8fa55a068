// docs/api.md equals the generated text, and its example commands run.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { methods } from "../../../../src/gateway/methods/method-table.ts";
import { checkAnswers } from "../../../support/gateway/described-answers.ts";
import { GatewayRun } from "../../../support/gateway/gateway.ts";
import { describeApi, exampleCommand, variables } from "./api-document.ts";

const run = promisify(execFile);

describe("docs/api.md", () => {
  it("is current", async () => {
    await expect(describeApi()).toMatchFileSnapshot("../../../../docs/api.md");
  });

  it.skipIf(!existsSync("/usr/bin/curl"))("has commands that run in a shell", async () => {
    const gateway = await GatewayRun.open();
    const env = { ...variables, GATEWAY: gateway.url(""), KEY: "good", PATH: process.env["PATH"] };
    const text = describeApi();
    for (const [name, method] of Object.entries(methods)) {
      const command = exampleCommand(name, method);
      expect(text).toContain(command);
      const { stdout } = await run("/bin/sh", ["-c", command], { env });
      const answer: unknown = JSON.parse(stdout);
      expect(answer, name).toMatchObject({ jsonrpc: "2.0", id: 1 });
      expect(answer, name).not.toMatchObject({ error: { data: { reason: "method_unknown" } } });
      expect(answer, name).not.toMatchObject({ error: { data: { reason: "request_invalid" } } });
      checkAnswers(JSON.stringify({ method: name }), answer);
    }
  });
});
