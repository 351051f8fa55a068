import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  type Config,
  formatConfig,
  loadConfig,
  parseConfig,
  secretFilesOf,
} from "../../../src/core/configuration/configuration.ts";
import { resolveSecrets } from "../../../src/core/configuration/secrets.ts";
import { temporaryFolder } from "../../support/temporary-folder.ts";

const least = "relay: { shredVersion: 1, authentication: off }\n";

/** The configuration of `lines`, in a folder with a file `secret`. */
function load(secret: string, ...lines: readonly string[]): Config {
  const folder = temporaryFolder();
  writeFileSync(join(folder, "secret"), secret);
  const file = join(folder, "shredway.yaml");
  writeFileSync(file, least + lines.join("\n"));
  return loadConfig(file);
}

function refusalOf(secret: string, ...lines: readonly string[]): string {
  try {
    load(secret, ...lines);
  } catch (error) {
    return error instanceof Error ? error.message : "";
  }
  return "accepted";
}

describe("secrets of a configuration", () => {
  it("are read from a file, and percent-encoded inside a URL", () => {
    const { data } = load(
      "p@ss/w:rd\n",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own form
      'data: { postgres: "postgres://shredway:${file:secret}@a,b:5433/shredway?sslmode=verify-full" }',
    );
    expect(data.postgres).toBe(
      "postgres://shredway:p%40ss%2Fw%3Ard@a,b:5433/shredway?sslmode=verify-full",
    );
  });

  it("are unchanged as a whole value, or in a header", () => {
    const config = load(
      "https://rpc.example.com/?key=a+b\r\n",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own form
      'solana: { rpc: "${file:secret}" }',
      "routes:",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: the configuration's own form
      '  - { name: a, kind: scheduler, url: "http://a.example.com/", headers: { X: "Bearer ${file:secret}" } }',
    );
    expect(config.solana?.rpc).toBe("https://rpc.example.com/?key=a+b");
    expect(config.routes[0]?.headers).toEqual({ X: "Bearer https://rpc.example.com/?key=a+b" });
    const shown = formatConfig(config);
    expect(shown).not.toContain("a+b");
    expect(shown).toContain("rpc: https://rpc.example.com/masked");
  });

  it("are read from the environment and from the service manager's credentials", () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, "database"), "hidden");
    const resolved = resolveSecrets(
      {
        tracker: { url: `http://\${env:HOST}/\${credential:database}` },
        routes: [{ leaders: { A: `\${env:URL}` }, url: `\${credential:database}` }],
      },
      {
        folder: "/etc",
        environment: { HOST: "h", URL: "http://u/", CREDENTIALS_DIRECTORY: folder },
      },
    );
    expect(resolved).toEqual({
      value: {
        tracker: { url: "http://h/hidden" },
        routes: [{ leaders: { A: "http://u/" }, url: "hidden" }],
      },
      problems: [],
      files: [join(folder, "database"), join(folder, "database")],
    });
  });

  it.each([
    [`rpc: "\${file:gone}"`, "hidden", /yaml:2: solana\.rpc: .*\/gone: cannot be read/],
    [`rpc: "\${file:secret}"`, "\n", /solana\.rpc: .*\/secret: expected a secret, got nothing/],
    [`rpc: "\${file:secret}"`, "hidden\nmore", /expected one line of text/],
    [`rpc: "\${file:secret}"`, "hidden", /solana\.rpc: URL without scheme; expected a URL of http/],
    [`rpc: "\${env:SHREDWAY_TEST_UNSET}"`, "", /the variable SHREDWAY_TEST_UNSET: expected a secr/],
    [
      `rpc: "\${credential:rpc}"`,
      "",
      /credential rpc \(LoadCredential=\), got no CREDENTIALS_DIREC/,
    ],
    [`rpc: "\${credential:../rpc}"`, "", /a credential's name without slashes/],
    [`rpc: "\${FOO}"`, "", /expected \$\{file:PATH\}, .* got another text in/],
    [`rpc: "\${file:}"`, "", /got no name/],
    [`rpc: "\${file:secret}"`, "hidden".repeat(1000), /expected at most 4096 bytes/],
  ])("are rejected without being quoted: %s", (line, secret, message) => {
    const refusal = refusalOf(secret, `solana: { ${line} }`);
    expect(refusal).toMatch(message);
    expect(refusal).not.toContain("hidden");
  });

  it("are not quoted if the resulting value is rejected", () => {
    const name = "x".repeat(65);
    const refusal = refusalOf(
      "hidden",
      "routes:",
      `  - { name: a, kind: scheduler, url: "http://a/", headers: { ${name}: "\${file:secret}" } }`,
    );
    expect(refusal).toMatch(/headers/);
    expect(refusal).not.toContain("hidden");
  });

  it("are allowed only in keys for secrets", () => {
    expect(refusalOf("x", `data: { directory: "\${file:secret}" }`)).toMatch(
      /data\.directory: expected the value itself/,
    );
    expect(parseConfig(`${least}data: { directory: "a\${b}" }`, "/x").data.directory).toBe(
      `/a\${b}`,
    );
  });

  it("report their files", () => {
    const folder = temporaryFolder();
    const file = join(folder, "shredway.yaml");
    writeFileSync(file, `${least}solana: { rpc: "http://a/\${file:secrets/rpc}" }`);
    expect(secretFilesOf(file)).toEqual([join(folder, "secrets/rpc")]);
  });
});
