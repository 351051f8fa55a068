// Shape readers: check received values and return them with a known type.
//
// Used by call-readers.ts and live-readers.ts. The page can be older or newer than the service. A value of another shape
// causes an error message on the page, never a half-rendered view.

export type Reader<T> = (value: unknown, place: string) => T;

export class ShapeError extends Error {}

function refuse(place: string, expected: string): never {
  throw new ShapeError(`${place}: expected ${expected}`);
}

export const text: Reader<string> = (value, place) =>
  typeof value === "string" ? value : refuse(place, "a string");

export const number: Reader<number> = (value, place) =>
  typeof value === "number" ? value : refuse(place, "a number");

export const flag: Reader<boolean> = (value, place) =>
  typeof value === "boolean" ? value : refuse(place, "true or false");

export const anything: Reader<unknown> = (value) => value;

export function orNull<T>(reader: Reader<T>): Reader<T | null> {
  return (value, place) => (value === null ? null : reader(value, place));
}

/** Returns `otherwise` if the value is absent. */
export function optional<T>(reader: Reader<T>, otherwise: T): Reader<T> {
  return (value, place) => (value === undefined ? otherwise : reader(value, place));
}

/** Returns null if the value is absent. */
export function maybe<T>(reader: Reader<T>): Reader<T | null> {
  return optional(orNull(reader), null);
}

export function oneOf<T extends string>(...words: readonly T[]): Reader<T> {
  return (value, place) => words.find((word) => word === value) ?? refuse(place, words.join(", "));
}

export function list<T>(reader: Reader<T>): Reader<readonly T[]> {
  return (value, place) =>
    Array.isArray(value)
      ? value.map((each, i) => reader(each, `${place}[${i}]`))
      : refuse(place, "a list");
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function record(value: unknown, place: string): Readonly<Record<string, unknown>> {
  return isRecord(value) ? value : refuse(place, "an object");
}

/** Reads the given members and ignores all others. */
export function object<T extends object>(
  members: {
    readonly [Name in keyof T]: Reader<T[Name]>;
  },
): Reader<T> {
  return (value, place) => {
    const given = record(value, place);
    const read: Partial<T> = {};
    for (const name in members) read[name] = members[name](given[name], `${place}.${name}`);
    // Each member was read by its own reader, so the object is a T.
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion
    return read as T;
  };
}
