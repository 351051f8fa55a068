// The service with http.tls, in its own process: JSON-RPC over HTTPS, the portal's cookie, a renewed
// certificate, and the messages for files that cannot be used.

import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { closing } from "../support/closing.ts";
import { hasOpenssl, makeCertificate } from "../support/network/test-certificate.ts";
import { Shredway, shredway } from "../support/processes/shredway.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const tip = "2gPG8fL2EV11ziLGpr1rDSrhhhGj2TgNNr9HVk8MyzbU";

function configuration(folder: string, certificate = "server.crt"): string {
  const file = join(folder, "shredway.yaml");
  const lines = [
    'relay: { listen: "127.0.0.1:0", shredVersion: 9, authentication: off }',
    `tips: { addresses: [${tip}] }`,
    "data: { directory: data }",
    "http:",
    '  listen: "127.0.0.1:0"',
    `  tls: { listen: "127.0.0.1:0", certificate: ${certificate}, key: server.key }`,
  ];
  writeFileSync(file, lines.join("\n"));
  return file;
}

interface Answer {
  readonly text: string;
  readonly cookie: string;
}

function post(url: string, ca: Buffer, body: object): Promise<Answer> {
  const { origin } = new URL(url);
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json", origin };
    const sent = request(url, { method: "POST", ca, agent: false, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (piece: string) => {
        text += piece;
      });
      response.on("end", () => resolve({ text, cookie: String(response.headers["set-cookie"]) }));
    });
    sent.once("error", reject);
    sent.end(JSON.stringify(body));
  });
}

describe.skipIf(!hasOpenssl)("http.tls (needs openssl)", () => {
  it("serves HTTPS beside HTTP, and picks up a renewed certificate", async () => {
    const folder = temporaryFolder();
    const files = makeCertificate(folder, "server");
    const file = configuration(folder);
    const created = await shredway("keys", "create", "--config", file, "--account", "tls");
    const [key = ""] = /sw_\w+/.exec(created.stdout) ?? [];
    const service = Shredway.run("start", "--config", file);
    closing({ close: () => service.kill() });
    const [, plain = "", secure = ""] = await service.printed(/^ready.* http=(\S+) https=(\S+)/m);
    const health = { jsonrpc: "2.0", id: 1, method: "getHealth" };
    const overHttp = await fetch(`http://${plain}/?api-key=${key}`, {
      method: "POST",
      body: JSON.stringify(health),
    });
    const before = readFileSync(files.certificate);
    const overTls = await post(`https://${secure}/?api-key=${key}`, before, health);
    expect(JSON.parse(overTls.text)).toEqual(JSON.parse(await overHttp.text()));
    const { cookie, text } = await post(`https://${secure}/portal/api/session`, before, { key });
    expect(cookie, text).toMatch(/; HttpOnly; SameSite=Strict; Secure$/);

    const renewed = makeCertificate(temporaryFolder(), "renewed");
    copyFileSync(renewed.certificate, files.certificate);
    copyFileSync(renewed.key, files.key);
    const after = readFileSync(renewed.certificate);
    await expect
      .poll(() => post(`https://${secure}/`, after, health).catch(String))
      .toMatchObject({ text: expect.stringContaining("jsonrpc") });
  });

  it("does not start with files that it cannot use, and says why", async () => {
    const folder = temporaryFolder();
    makeCertificate(folder, "server");
    const file = configuration(folder, "missing.crt");
    const { code, stdout, stderr } = await shredway("start", "--config", file);
    expect(code).toBe(1);
    expect(stdout + stderr).toMatch(/missing\.crt: cannot be read: ENOENT/);
  });
});
