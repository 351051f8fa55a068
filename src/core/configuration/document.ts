// Configuration document: docs/configuration.md, written from the schema.
//
// A test compares the file with the result of describeConfiguration; `npx vitest run -u` writes it
// again. All facts about keys belong in the schema files, none here.

import { z } from "zod";
import { configSchema, keyDocuments, unwrapSchema } from "./schema.ts";

interface Row {
  readonly key: string;
  readonly section: boolean;
  readonly expects: string;
  readonly meaning: string;
  readonly unit: string;
  readonly fallback: string;
}

function fallbackOf(schema: z.core.$ZodType, absent: string | undefined): string {
  if (schema instanceof z.ZodDefault) return `\`${JSON.stringify(schema.def.defaultValue)}\``;
  if (schema instanceof z.ZodPrefault) return "the defaults of its keys";
  return schema instanceof z.ZodExactOptional ? (absent ?? "none") : "**required**";
}

function collectRows(schema: z.core.$ZodType, key: string, rows: Row[]): void {
  const inner = unwrapSchema(schema);
  const document = keyDocuments.get(schema);
  if (key !== "") {
    if (!document) throw new Error(`the key ${key} has no documentation in schema.ts`);
    rows.push({
      key,
      section: inner instanceof z.ZodObject,
      expects: document.expects,
      meaning: document.meaning,
      unit: document.unit ?? "",
      fallback: fallbackOf(schema, document.absent),
    });
  }
  const listed = inner instanceof z.ZodArray ? unwrapSchema(inner.element) : inner;
  if (!(listed instanceof z.ZodObject)) return;
  const prefix = inner instanceof z.ZodArray ? `${key}[].` : key === "" ? "" : `${key}.`;
  for (const [name, part] of Object.entries(listed.shape)) collectRows(part, prefix + name, rows);
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|");
}

const head = `# Configuration

For operators who write \`shredway.yaml\`. After reading this page you can write a configuration, keep secrets outside of it, and look up each key.

Start the service with \`shredway start --config shredway.yaml\` (YAML 1.2). \`--print-config\` prints the effective configuration, secrets masked.

- Unknown keys are errors. All errors of a file are reported together, each with its line.
- The file and the leader schedule must be regular files, not pipes. Paths in the file are relative to the file.
- Addresses are IPv4 or IPv6 addresses. Host names are not accepted.
- A reload (SIGHUP) applies some keys live; [operations.md](operations.md#reload) lists them.

\`\`\`yaml
solana: { rpc: "https://rpc.example.com/" }
relay:
  listen: "0.0.0.0:20000"
  workers: 2
  shredVersion: 50093
  leaders: { file: leaders.json }
  sources:
    - { name: fra-a, address: 10.0.0.0/24, tier: tier-1 }
    - { name: fra-b, address: 10.0.1.7, tier: tier-2 }
  destinations:
    - { address: "192.0.2.10:9001", tier: tier-1 }
    - { address: "[2001:db8::10]:9001", tier: tier-2, name: backup }
\`\`\`

## Secrets

Secrets can be outside of the configuration file. These keys accept references, alone or within a longer text:
\`solana.rpc\`, \`solana.websocket\`, \`relay.discovery.url\`, \`data.postgres\`, \`tracker.url\`, \`routes[].url\`,
\`routes[].leaders\` and \`routes[].headers\`. A reference in any other key is an error. No error message contains a secret.
\`shredway doctor\` warns if the file itself contains a secret and all users can read it.

| reference | replaced by |
|---|---|
| \`\${file:PATH}\` | the only line of this file; the path is relative to the configuration file; at most 4,096 bytes |
| \`\${env:NAME}\` | the environment variable |
| \`\${credential:NAME}\` | the systemd credential: the file NAME in \`$CREDENTIALS_DIRECTORY\` (\`LoadCredential=\` in the unit) |

\`\`\`yaml
data: { postgres: "postgres://shredway:\${file:secrets/postgres}@db-1,db-2/shredway?sslmode=verify-full" }
routes:
  - { name: partner, kind: swqos, url: "https://swqos.example.com/", headers: { Authorization: "Bearer \${env:PARTNER_KEY}" } }
\`\`\`

Within a URL the secret is percent-encoded, so a password may contain any character. A reference that is the whole value
is used unchanged. A reload (SIGHUP) reads the files again; \`data.postgres\` and \`solana\` need a restart.

## Keys

| key | value | unit | default | meaning |
|---|---|---|---|---|
`;

/** The configuration example of the document; a test checks that it is accepted. */
export function configurationExample(): string {
  return /```yaml\n([\s\S]*?)```/.exec(head)?.[1] ?? "";
}

/** The whole text of docs/configuration.md. */
export function describeConfiguration(): string {
  const rows: Row[] = [];
  collectRows(configSchema, "", rows);
  const lines = rows.map(
    ({ key, expects, unit, fallback, meaning }) =>
      `| \`${key}\` | ${cell(expects)} | ${unit} | ${cell(fallback)} | ${cell(meaning)} |`,
  );
  return `${head}${lines.join("\n")}\n`;
}
