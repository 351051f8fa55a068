// Builds the OpenRPC document of the gateway's methods.
//
// Called by descriptions.ts; its sources are the method declarations and the error table. Read
// methods are listed by name only: the node defines their results.

import { errorTable, type Reason } from "../../../core/errors.ts";
import type { Region } from "../../methods/dependencies.ts";
import type { Method, MethodDocument } from "../../methods/method.ts";
import { methods } from "../../methods/method-table.ts";

export interface DescriptionFacts {
  readonly version: string;
  readonly regions: readonly Pick<Region, "name" | "url">[];
  /** Methods that are passed on to the node. */
  readonly readMethods: ReadonlySet<string>;
}

export const title = "Shredway gateway";
export const license = { name: "Apache-2.0" };

/** The newest version that public validators support. */
const openRpcVersion = "1.3.2";

function contentDescriptors({ params }: MethodDocument): object[] {
  return params.map(({ name, description, isRequired, schema }) => ({
    name,
    description,
    required: isRequired,
    schema,
  }));
}

function examplePairing(name: string, { example, params, result }: MethodDocument): object {
  return {
    name: `${name}Example`,
    params: example.params.map((value, i) => ({ name: params[i]?.name ?? `params[${i}]`, value })),
    result: { name: result.name, value: example.result },
  };
}

function errorReference(reason: Reason): object {
  return { $ref: `#/components/errors/${reason}` };
}

function methodObject(name: string, method: Method): object {
  const { summary, description, result, errors, scopes } = method;
  return {
    name,
    summary,
    ...(description !== undefined && { description }),
    paramStructure: "by-position",
    params: contentDescriptors(method),
    result: { name: result.name, required: true, schema: result.schema },
    errors: errors.map(errorReference),
    examples: [examplePairing(name, method)],
    "x-scopes": scopes,
  };
}

function errorObject(reason: Reason): object {
  const { jsonRpcCode, text } = errorTable[reason];
  return { code: jsonRpcCode, message: text, data: { reason } };
}

/** All reasons that methods list, each once. */
function namedReasons(): Reason[] {
  return [...new Set(Object.values(methods).flatMap(({ errors }) => errors))].toSorted();
}

const description =
  "JSON-RPC 2.0 over HTTP POST and WebSocket. Parameters are given by position; null counts as absent, and " +
  "unknown options are ignored. Errors: `message` begins with the reason, which is also in " +
  "`data.reason`; `data` may have further details.";

export function openRpcDocument({ version, regions, readMethods }: DescriptionFacts): object {
  const servers = regions.flatMap(({ name, url }) => (url === null ? [] : [{ name, url }]));
  return {
    openrpc: openRpcVersion,
    info: { title, version, description, license },
    ...(servers.length > 0 && { servers }),
    methods: Object.entries(methods).map(([name, method]) => methodObject(name, method)),
    components: {
      errors: Object.fromEntries(namedReasons().map((reason) => [reason, errorObject(reason)])),
    },
    "x-passed-on": {
      description:
        "methods that this service forwards to its node; the node's responses are returned unchanged",
      scopes: ["read"],
      methods: [...readMethods],
    },
  };
}
