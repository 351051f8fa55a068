// Positional parameters of a method: declaration, documentation and parsing.
//
// method.ts uses it when a method is declared, and for every call.

import type { Json } from "../../core/json-rpc/json-text.ts";
import type { JsonSchema } from "./json-schema.ts";
import type { Shape, ValueOf } from "./shapes.ts";

/** One parameter, by its position. */
export interface Param<T> {
  readonly shape: Shape<T>;
  readonly description: string;
  readonly isRequired: boolean;
}

export type Params = Readonly<Record<string, Param<unknown>>>;
export type ArgsOf<P extends Params> = {
  readonly [Name in keyof P]: ValueOf<P[Name]["shape"]>;
};

/** Documentation of a parameter. */
export interface ParamDocument {
  readonly name: string;
  readonly description: string;
  readonly isRequired: boolean;
  readonly schema: JsonSchema;
}

export function required<T>(shape: Shape<T>, description: string): Param<T> {
  return { shape, description, isRequired: true };
}

export function optional<T>(shape: Shape<T>, description: string): Param<T> {
  return { shape, description, isRequired: false };
}

export function paramDocuments(params: Params): ParamDocument[] {
  return Object.entries(params).map(([name, { shape, description, isRequired }]) => ({
    name,
    description,
    isRequired,
    schema: shape.schema,
  }));
}

/**
 * Parses `params`, which are in positional order. `readingOrder` names those to parse first,
 * because callers get the first error and clients rely on which it is.
 */
export function paramReader<const P extends Params>(
  params: P,
  readingOrder: readonly (keyof P & string)[] = [],
): (given: readonly Json[]) => ArgsOf<P> {
  const names = Object.keys(params);
  const placed = Object.entries(params).map(([name, { shape }], position) => {
    const rank = readingOrder.indexOf(name);
    const turn = rank < 0 ? names.length + position : rank;
    return { name, shape, position, turn, what: `params[${position}]` };
  });
  const checks = placed.flatMap(({ shape: { check }, what, position }) =>
    check ? [{ check, what, position }] : [],
  );
  const reads = placed
    .toSorted((one, other) => one.turn - other.turn)
    .map(({ name, shape, what, position }) => ({ name, read: shape.reader(what), position }));
  return (given) => {
    for (const { check, what, position } of checks) check(what, given[position]);
    const args: Record<string, unknown> = {};
    for (const { name, read, position } of reads) args[name] = read(given[position]);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- every parameter was just read
    return args as ArgsOf<P>;
  };
}
