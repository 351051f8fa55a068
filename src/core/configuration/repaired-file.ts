// Removes what is invalid from a file's values, so that the rest can be checked too.
//
// Used by file-problems.ts: one wrong value must not hide the mistakes in other keys. Works on a
// copy, and remembers the place of each value in the file. Pure.

import { z } from "zod";
import { schemaAt } from "./schema.ts";

type Path = (string | number)[];
type Container = Record<string, unknown> | unknown[];

function isContainer(value: unknown): value is Container {
  return typeof value === "object" && value !== null;
}

function childOf(value: Container, part: string | number): unknown {
  if (Array.isArray(value)) return typeof part === "number" ? value[part] : undefined;
  return Object.hasOwn(value, part) ? value[part] : undefined;
}

/** A value that satisfies a required key whose own value is missing or invalid. */
const substitutes: readonly (readonly [path: string, value: unknown])[] = [
  ["relay", { shredVersion: 1 }],
  ["relay.shredVersion", 1],
];

export class RepairedFile {
  value: unknown;
  /** Paths in the file whose values do not count any more. */
  readonly removed: (readonly (string | number)[])[] = [];
  /** For a list without its invalid elements: the original positions of the others. */
  readonly #positions = new WeakMap<object, number[]>();
  /** For a mapping with a corrected key: its name in the file. */
  readonly #names = new WeakMap<object, Map<string, string>>();

  constructor(file: unknown) {
    this.value = structuredClone(file);
  }

  /** Path in the file of the value at `path` here. */
  originalPath(path: Path): Path {
    const original: Path = [];
    let value: unknown = this.value;
    for (const part of path) {
      let name = part;
      if (isContainer(value)) {
        if (typeof part === "number") name = this.#positions.get(value)?.[part] ?? part;
        else name = this.#names.get(value)?.get(part) ?? part;
        value = childOf(value, part);
      } else value = undefined;
      original.push(name);
    }
    return original;
  }

  #at(path: Path): unknown {
    let value: unknown = this.value;
    for (const part of path) value = isContainer(value) ? childOf(value, part) : undefined;
    return value;
  }

  /** Gives the mistyped key `wrong` in the mapping at `path` its intended name. */
  rename(path: Path, wrong: string, intended: string): void {
    const mapping = this.#at(path);
    if (!isContainer(mapping) || Array.isArray(mapping)) return;
    const names = this.#names.get(mapping) ?? new Map<string, string>();
    this.#names.set(mapping, names.set(intended, names.get(wrong) ?? wrong));
    mapping[intended] = mapping[wrong];
    delete mapping[wrong];
  }

  /** Removes the value at `path`, with the values around it that are invalid without it. */
  remove(whole: Path): void {
    // The keys of a route depend on each other, so a route is removed as a whole.
    const path = whole[0] === "routes" ? whole.slice(0, 2) : whole;
    for (let length = path.length; length > 0; length--) {
      const part = path[length - 1];
      const around = this.#at(path.slice(0, length - 1));
      if (part === undefined || !isContainer(around)) continue;
      const here = path.slice(0, length);
      const substitute = substitutes.find(([name]) => name === here.join("."));
      if (substitute === undefined && childOf(around, part) === undefined) continue;
      const isRequired = !Array.isArray(around) && isRequiredKey(here);
      if (isRequired && substitute === undefined) continue;
      this.removed.push(this.originalPath(here));
      if (Array.isArray(around)) this.#removeElement(around, Number(part));
      else if (substitute === undefined) delete around[part];
      else around[part] = structuredClone(substitute[1]);
      return;
    }
  }

  #removeElement(list: unknown[], index: number): void {
    const positions = this.#positions.get(list) ?? list.map((_, i) => i);
    positions.splice(index, 1);
    list.splice(index, 1);
    this.#positions.set(list, positions);
  }
}

function isRequiredKey(path: Path): boolean {
  const schema = schemaAt(path);
  if (schema === schemaAt(path.slice(0, -1))) return false; // an entry of a mapping with free names
  const isOptional =
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault ||
    schema instanceof z.ZodExactOptional;
  return !isOptional;
}
