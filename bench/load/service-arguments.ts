// Arguments of Node.js for programs of the benchmark.

import { readFileSync } from "node:fs";

const { scripts }: { scripts: { start: string } } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
);
const [, options] = /exec node (--.*) dist\//.exec(scripts.start) ?? [];
if (options === undefined) throw new Error("expected options of Node.js in npm start, got none");

/** Options of Node.js in `npm start`. */
export const startOptions: readonly string[] = options.split(" ");

const compiledProduct = new URL("compiled-product.mjs", import.meta.url).href;

/** For a program in TypeScript that uses the compiled product. */
export const programArguments: readonly string[] = ["--import", "tsx", "--import", compiledProduct];

/** For a server under test: its options are those of `npm start`, too. */
export const serviceArguments: readonly string[] = [...startOptions, ...programArguments];
