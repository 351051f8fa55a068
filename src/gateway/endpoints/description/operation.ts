// The description of one HTTP operation: path, parameters, body and responses.
//
// paths.ts and tip-paths.ts list them; openapi.ts writes them.

import type { JsonSchema, Sample } from "../../schema/json-schema.ts";
import type { Answers } from "./http-answers.ts";

export interface Parameter {
  readonly name: string;
  readonly description: string;
  readonly schema: JsonSchema;
  readonly in: "query" | "path";
}

export interface Operation {
  readonly path: string;
  readonly method: "get" | "post";
  /** Unique; generated clients use it as a name. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly needsKey: boolean;
  readonly parameters: readonly Parameter[];
  readonly body?: { readonly type: string; readonly schema: JsonSchema; readonly example?: Sample };
  readonly answers: Answers;
  /** Messages of the path's WebSocket: `request` from the client, `message` from the service. */
  readonly webSocket?: { readonly request?: JsonSchema; readonly message: JsonSchema };
}

type Described = Pick<Parameter, "name" | "description" | "schema">;

export function inQuery(...parameters: readonly Described[]): Parameter[] {
  return parameters.map(({ name, description, schema }) => ({
    name,
    description,
    schema,
    in: "query",
  }));
}
