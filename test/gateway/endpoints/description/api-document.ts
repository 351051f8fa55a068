// Generates docs/api.md from the OpenRPC and OpenAPI documents.
//
// A test compares the file with the result of describeApi; `npx vitest run -u` regenerates it.
// Facts about methods belong in their declarations, facts about paths in the table of paths.

import { errorTable, type Reason, reasons } from "../../../../src/core/errors.ts";
import { writeJson } from "../../../../src/core/json-rpc/json-text.ts";
import { statusOf } from "../../../../src/gateway/endpoints/answers.ts";
import { uriRule } from "../../../../src/gateway/endpoints/description/openapi.ts";
import type { Operation } from "../../../../src/gateway/endpoints/description/operation.ts";
import { operations } from "../../../../src/gateway/endpoints/description/paths.ts";
import { readMethodNames } from "../../../../src/gateway/endpoints/read-methods.ts";
import type { Method } from "../../../../src/gateway/methods/method.ts";
import { methods } from "../../../../src/gateway/methods/method-table.ts";
import type { JsonSchema } from "../../../../src/gateway/schema/json-schema.ts";
import { samples } from "../../../../src/gateway/schema/samples.ts";

/** Shell variables for the reader's own values in the examples. */
export const variables: Readonly<Record<string, string>> = {
  TRANSACTION: samples.transaction,
  SECOND: samples.secondTransaction,
  SIGNATURE: samples.signature,
  BUNDLE: samples.bundleId,
  NONCE_ACCOUNT: samples.nonceAccount,
  REGION: samples.region,
  ADDRESS: samples.address,
  DESTINATION: samples.destination,
  TOKEN: samples.token,
};

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}

function withVariables(json: string): string {
  let text = json;
  for (const [name, value] of Object.entries(variables)) {
    text = text.replaceAll(`"${value}"`, `"'"$${name}"'"`);
  }
  return text;
}

// ---- text of schemas ------------------------------------------------------------------------

function boundsText({ minimum, maximum }: JsonSchema): string {
  if (minimum === undefined || maximum === undefined) return "";
  return ` ${minimum} to ${maximum}`;
}

function listText({ items, minItems, maxItems }: JsonSchema): string {
  const least = minItems === maxItems ? "" : `${minItems ?? 0} to `;
  const count = maxItems === undefined ? "" : ` of ${least}${maxItems}`;
  const each = items ? `: ${kindText(items)}` : "";
  return `array${count}${each}`;
}

function plainKind(schema: JsonSchema, type: string): string {
  if (schema.const !== undefined) return `\`${writeJson(schema.const)}\``;
  if (schema.enum) {
    const values = schema.enum.filter((value) => value !== null);
    const words = values.map((value) => (typeof value === "string" ? value : writeJson(value)));
    return words.map((each) => `\`${each}\``).join(", ");
  }
  if (type === "array") return listText(schema);
  if (type === "object") return schema.title ? `object ${schema.title}` : "object";
  if (type === "string" && schema.pattern) return schema.description ?? "string";
  return `${type}${boundsText(schema)}`;
}

/** A short text for the type of a value. */
function kindText(schema: JsonSchema): string {
  const choices = schema.anyOf ?? schema.oneOf;
  if (choices) return choices.map(kindText).join("; or ");
  const { type } = schema;
  if (type === undefined) return schema.const === undefined ? "any JSON" : plainKind(schema, "");
  if (type === "null") return "null";
  return typeof type === "string"
    ? plainKind(schema, type)
    : `${plainKind(schema, type[0])}; or null`;
}

/** Objects in a schema, each once, in order of appearance. */
function collectObjects(schema: JsonSchema, found: Map<string, JsonSchema>): void {
  if (schema.properties && schema.title !== undefined) found.set(schema.title, schema);
  const inner = [...Object.values(schema.properties ?? {}), ...(schema.anyOf ?? [])];
  for (const each of [...inner, ...(schema.oneOf ?? []), ...(schema.items ? [schema.items] : [])]) {
    collectObjects(each, found);
  }
}

function objectTable(title: string, schema: JsonSchema): string[] {
  const required = new Set(schema.required);
  const rows = Object.entries(schema.properties ?? {}).map(([name, field]) => {
    const usual = field.default === undefined ? "" : `\`${writeJson(field.default)}\``;
    const isThere = required.has(name) ? "yes" : "";
    const { description = "", ...kind } = field;
    const meaning = cell(description);
    return `| \`${name}\` | ${cell(kindText(kind))} | ${isThere} | ${usual} | ${meaning} |`;
  });
  return [
    `${title}:`,
    "",
    "| field | value | required | default | meaning |",
    "|---|---|---|---|---|",
    ...rows,
    "",
  ];
}

function objectTables(schemas: readonly JsonSchema[], isKnown: Set<string>): string[] {
  const found = new Map<string, JsonSchema>();
  for (const schema of schemas) collectObjects(schema, found);
  const fresh = [...found].filter(([title]) => !isKnown.has(title));
  for (const [title] of fresh) isKnown.add(title);
  return fresh.flatMap(([title, schema]) => objectTable(title, schema));
}

// ---- methods --------------------------------------------------------------------------------

/** The shell command of an example. */
export function exampleCommand(name: string, { example }: Method): string {
  const call = { jsonrpc: "2.0", id: 1, method: name, params: example.params };
  return `curl -s "$GATEWAY/relay?api-key=$KEY" -d '${withVariables(writeJson(call))}'`;
}

function paramLines({ params }: Method): string[] {
  if (params.length === 0) return ["No parameters.", ""];
  const rows = params.map(({ name, description, isRequired, schema }, position) => {
    const kind = cell(kindText(schema));
    return `| ${position} | ${name} | ${kind} | ${isRequired ? "yes" : ""} | ${cell(description)} |`;
  });
  const head = "| position | parameter | value | required | meaning |";
  return [head, "|---|---|---|---|---|", ...rows, ""];
}

function methodLines(name: string, method: Method, known: Set<string>): string[] {
  const { summary, description, scopes, params, result, errors, example } = method;
  const scope = scopes.length === 0 ? "No key is needed." : `Scope: ${scopes.join(" or ")}.`;
  const own = errors.filter((reason) => !ofEveryCall.has(reason));
  const schemas = [...params.map(({ schema }) => schema), result.schema];
  return [
    `### ${name}`,
    "",
    [summary, description, scope].filter(Boolean).join(" "),
    "",
    ...paramLines(method),
    `Result: ${result.name}: ${kindText(result.schema)}.`,
    "",
    ...objectTables(schemas, known),
    ...(own.length > 0 ? [`Errors: ${own.map((each) => `\`${each}\``).join(", ")}.`, ""] : []),
    "```sh",
    exampleCommand(name, method),
    "```",
    "",
    "```json",
    writeJson(example.result),
    "```",
    "",
  ];
}

function reasonsOfEveryOperation(): Set<Reason> {
  const all = Object.values(methods);
  return new Set(reasons.filter((reason) => all.every(({ errors }) => errors.includes(reason))));
}

const ofEveryCall: ReadonlySet<Reason> = new Set([...reasonsOfEveryOperation(), "scope_missing"]);

function errorLines(): string[] {
  const named = new Set(Object.values(methods).flatMap(({ errors }) => errors));
  const rows = reasons
    .filter((reason) => named.has(reason))
    .map((reason) => {
      const { jsonRpcCode, text } = errorTable[reason];
      return `| \`${reason}\` | ${jsonRpcCode} | ${statusOf(reason)} | ${text} |`;
    });
  return ["| reason | code | HTTP | meaning |", "|---|---|---|---|", ...rows, ""];
}

// ---- paths ----------------------------------------------------------------------------------

function operationLines(operation: Operation, known: Set<string>): string[] {
  const { path, method, summary, description, needsKey, parameters, answers, webSocket } =
    operation;
  const key = needsKey ? "" : "No key is needed.";
  const rows = parameters.map(
    ({ name, description: meaning, schema, in: place }) =>
      `| \`${name}\` | ${place} | ${cell(kindText(schema))} | ${cell(meaning)} |`,
  );
  const { body } = operation;
  const schemas = [
    ...(body ? [body.schema] : []),
    ...Object.values(answers).flatMap(({ content }) => (content ? [content.schema] : [])),
    ...(webSocket?.request ? [webSocket.request] : []),
    ...(webSocket ? [webSocket.message] : []),
  ];
  return [
    `### ${method.toUpperCase()} ${path}`,
    "",
    [summary, description, key].filter(Boolean).join(" "),
    "",
    ...(rows.length > 0
      ? ["| parameter | in | value | meaning |", "|---|---|---|---|", ...rows, ""]
      : []),
    ...(body ? [`Body (\`${body.type}\`): ${kindText(body.schema)}.`, ""] : []),
    ...answerLines(operation),
    ...objectTables(schemas, known),
  ];
}

function answerLines({ answers }: Operation): string[] {
  const rows = Object.entries(answers).map(([status, { description, content }]) => {
    const kind = content ? cell(kindText(content.schema)) : "";
    return `| ${status} | ${cell(description)} | ${kind} |`;
  });
  return ["| status | when | body |", "|---|---|---|", ...rows, ""];
}

// ---- the document ---------------------------------------------------------------------------

const head = `# API reference

For developers who call the gateway: every method and path with its parameters, result, errors and an example. After reading
[gateway.md](gateway.md) you can look up each field here. The page is generated from the declarations that validate calls, and a
test keeps it current. A running service returns the same facts as \`GET /openrpc.json\` (also the method \`rpc.discover\`) and
\`GET /openapi.json\`.

The examples run in a shell:

\`\`\`sh
GATEWAY=http://127.0.0.1:8780
KEY=…                         # shredway keys create
TRANSACTION=… SECOND=…        # signed transactions in base64
\`\`\`

`;

/** The complete text of docs/api.md. */
export function describeApi(): string {
  const known = new Set<string>();
  const everywhere = [...ofEveryCall].map((reason) => `\`${reason}\``).join(", ");
  return [
    `${head}## Methods`,
    "",
    "Methods are called by JSON-RPC 2.0 with parameters by position. Null counts as absent; unknown fields of options are ignored.",
    "",
    ...Object.entries(methods).flatMap(([name, method]) => methodLines(name, method, known)),
    "These methods are passed on to the node behind the service and need the scope `read`:",
    "",
    `- ${readMethodNames.join(", ")}`,
    "",
    "## Errors",
    "",
    `Every method may fail with ${everywhere}. Its section lists further errors.`,
    "",
    ...errorLines(),
    "## Paths",
    "",
    `${uriRule} A key may be in the query of each path.`,
    "",
    ...operations.flatMap((operation) => operationLines(operation, known)),
  ]
    .join("\n")
    .trimEnd()
    .concat("\n");
}
