// Builds the OpenAPI document of the gateway's HTTP paths.
//
// Called by descriptions.ts; its source is the table of paths (paths.ts).

import type { Answer, Header } from "./http-answers.ts";
import { type DescriptionFacts, license, title } from "./openrpc.ts";
import type { Operation, Parameter } from "./operation.ts";
import { operations } from "./paths.ts";

const openApiVersion = "3.1.0";

/** Places for the API key; one of them is enough. */
const securitySchemes = {
  queryKey: { type: "apiKey", in: "query", name: "api-key" },
  headerKey: { type: "apiKey", in: "header", name: "api-key" },
  underscoreKey: { type: "apiKey", in: "header", name: "api_key" },
  blockEngineKey: { type: "apiKey", in: "header", name: "x-jito-auth" },
  bearerKey: { type: "http", scheme: "bearer" },
  basicKey: { type: "http", scheme: "basic" },
} as const;

const anyKey = Object.keys(securitySchemes).map((name) => ({ [name]: [] }));

function parameterObject({ name, description, schema, in: place }: Parameter): object {
  return { name, in: place, description, required: place === "path", schema };
}

function headerObjects(headers: Readonly<Record<string, Header>>): object {
  return Object.fromEntries(
    Object.entries(headers).map(([name, { description, schema }]) => [
      name,
      { description, schema },
    ]),
  );
}

function responseObject({ description, content, headers }: Answer): object {
  return {
    description,
    ...(headers && { headers: headerObjects(headers) }),
    ...(content && { content: { [content.type]: { schema: content.schema } } }),
  };
}

function requestBody({ type, schema, example }: NonNullable<Operation["body"]>): object {
  const media = { schema, ...(example !== undefined && { example }) };
  return { required: type === "application/json", content: { [type]: media } };
}

function operationObject(operation: Operation): object {
  const { id, summary, description, needsKey, parameters, body, answers, webSocket } = operation;
  const responses = Object.entries(answers).map(([status, each]) => [status, responseObject(each)]);
  return {
    operationId: id,
    summary,
    ...(description !== undefined && { description }),
    ...(needsKey && { security: anyKey }),
    parameters: parameters.map(parameterObject),
    ...(body && { requestBody: requestBody(body) }),
    responses: Object.fromEntries(responses),
    ...(webSocket && { "x-websocket": webSocket }),
  };
}

/** A path may have one operation of each method. */
function pathObjects(): object {
  const paths = new Map<string, Record<string, object>>();
  for (const operation of operations) {
    const { path, method } = operation;
    paths.set(path, { ...paths.get(path), [method]: operationObject(operation) });
  }
  return Object.fromEntries(paths);
}

/** For OpenAPI and the API document. */
export const uriRule =
  "A parameter that its path does not describe, and a repeated one, are refused as an invalid value.";

const description =
  "HTTP paths. `/openrpc.json` describes the JSON-RPC methods. The query or one of four headers may " +
  "contain the API key; prefer a header, because URLs end up in logs. HEAD is supported where GET is. " +
  uriRule;

export function openApiDocument({ version, regions }: DescriptionFacts): object {
  const elsewhere = regions.flatMap(({ name, url }) =>
    url === null ? [] : [{ url, description: name }],
  );
  return {
    openapi: openApiVersion,
    info: { title, version, description, license },
    servers: elsewhere.length > 0 ? elsewhere : [{ url: "/" }],
    paths: pathObjects(),
    components: { securitySchemes },
  };
}
