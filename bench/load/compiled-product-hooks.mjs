// Hooks of node:module for compiled-product.mjs; they run in a thread of Node.js.

const sources = new URL("../../src/", import.meta.url).href;
const compiled = new URL("../../dist/", import.meta.url).href;

/** Resolves src/….ts to dist/….js; other modules keep their places. */
export async function resolve(specifier, context, next) {
  const found = await next(specifier, context);
  if (!found.url.startsWith(sources)) return found;
  const [, path] = /^(.*)\.ts(?:\?|$)/.exec(found.url.slice(sources.length)) ?? [];
  return path === undefined ? found : { ...found, url: `${compiled}${path}.js`, format: "module" };
}
