// Arguments of Node.js for a server under test: those of `npm start`, and the loader of TypeScript.

import { readFileSync } from "node:fs";

const { scripts }: { scripts: { start: string } } = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
);
const [, options] = /exec node (--.*) dist\//.exec(scripts.start) ?? [];
if (options === undefined) throw new Error("expected options of Node.js in npm start, got none");

export const serviceArguments: readonly string[] = [...options.split(" "), "--import", "tsx"];
