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
import { holdsInlineSecrets, resolveSecrets } from "../../../src/core/configuration/secrets.ts";
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

const withUrl = (url: string) => ({ solana: { rpc: url } });
const withDatabase = (url: string) => ({ data: { postgres: url } });
const withHeader = (value: string) => ({ routes: [{ headers: { Authorization: value } }] });

describe("holdsInlineSecrets", () => {
  it.each<[string, unknown]>([
    ["no secret at all", { relay: { shredVersion: 1 }, data: { directory: "/secret/path" } }],
    ["a URL with a host only", withUrl("http://127.0.0.1:8899/")],
    ["a URL without a value in its query", withUrl("http://a/?key=")],
    ["a URL from a reference", withUrl(`\${file:secrets/rpc}`)],
    ["a query from a reference", withUrl(`https://a/?api-key=\${env:KEY}`)],
    ["a path from a reference", withUrl(`https://a/v1/\${file:secrets/key}/`)],
    ["words beside a reference", withUrl(`https://a/api/v1/bundles?uuid=\${env:KEY}&region=fra`)],
    ["a password from a reference", withUrl(`https://shredway-frankfurt-1:\${env:P}@a/`)],
    ["a host from a reference", withUrl(`http://\${env:HOST}/`)],
    ["PostgreSQL without a password", withDatabase("postgres:///shredway?host=/run/postgresql")],
    [
      "PostgreSQL with a role",
      withDatabase("postgres://shredway@a,b/shredway?sslmode=verify-full"),
    ],
    [
      "PostgreSQL's password from a reference",
      withDatabase(`postgres://s:\${file:p/q}@a,b:1/d?x=y`),
    ],
    ["PostgreSQL's option from a reference", withDatabase(`postgres:///d?password=\${env:P}`)],
    ["a header from a reference", withHeader(`\${credential:key}`)],
    ["a scheme and a reference", withHeader(`Bearer \${env:KEY}`)],
    ["an empty header", withHeader("")],
  ])("is false for %s", (_, file) => {
    expect(holdsInlineSecrets(file)).toBe(false);
  });

  it.each<[string, unknown]>([
    ["a path", withUrl("https://a/v1/key")],
    ["a query", withUrl("https://a/?key=x")],
    ["a query without a name", withUrl("https://a?x")],
    ["a user", withUrl("https://key@a/")],
    ["a user with an empty password", withUrl("https://key:@a/")],
    ["a password", withUrl(`https://\${env:USER}:x@a/`)],
    ["a part of a password", withUrl(`https://u:x\${env:P}@a/`)],
    ["a path on a host from a reference", withUrl(`http://\${env:HOST}/key`)],
    ["a key beside a reference", withUrl(`https://a/0123456789abcdef?region=\${env:REGION}`)],
    ["PostgreSQL's password", withDatabase("postgres://u:x@a,b/d")],
    ["PostgreSQL's password with an at sign", withDatabase("postgres://u:p@ss@a/d")],
    ["PostgreSQL's option", withDatabase("postgres:///d?host=/run&password=x")],
    ["a header", withHeader("Bearer x")],
    ["a header beside a reference", withHeader(`\${env:A} 0123456789abcdef`)],
    ["relay.discovery.url", { relay: { discovery: { url: "http://a/key" } } }],
    ["a leader's URL", { routes: [{}, { leaders: { A: "http://a/key" } }] }],
    [
      "one of several keys",
      { ...withUrl(`\${file:secrets/rpc}`), tracker: { url: "https://a/?k=x" } },
    ],
  ])("is true for %s", (_, file) => {
    expect(holdsInlineSecrets(file)).toBe(true);
  });

  it("is false for a file without keys, and ends for one that contains itself", () => {
    expect(holdsInlineSecrets(null)).toBe(false);
    const self: Record<string, unknown> = {};
    self["solana"] = self; // an alias in YAML may contain itself
    expect(holdsInlineSecrets(self)).toBe(false);
  });
});

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

  it("are accepted in relay.discovery.url, and not quoted if it is invalid", () => {
    const at = (url: string) => {
      const folder = temporaryFolder();
      writeFileSync(join(folder, "secret"), "hidden/word\n");
      const file = join(folder, "shredway.yaml");
      const discovery = `{ url: "${url}", tier: tier-1 }`;
      writeFileSync(file, least.replace(" }", `, discovery: ${discovery} }`));
      return loadConfig(file);
    };
    const config = at(`https://relay:\${file:secret}@inventory.example.com/list`);
    expect(config.relay.discovery?.url).toBe(
      "https://relay:hidden%2Fword@inventory.example.com/list",
    );
    expect(formatConfig(config)).toContain("url: https://inventory.example.com/masked");
    expect(formatConfig(config)).not.toContain("hidden");
    expect(() => at(`\${file:secret}`)).toThrow(
      /relay\.discovery\.url: URL without scheme; (?!.*hidden)/,
    );
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
