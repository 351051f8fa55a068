// Programs that see another version of Node.js than the one that runs them.

/** Environment in which every Node program sees another version. */
export function onNode(version: string): NodeJS.ProcessEnv {
  const changes = {
    version: `"v${version}"`,
    versions: `{ ...process.versions, node: "${version}", modules: "137" }`,
  };
  const code = Object.entries(changes).map(
    ([name, value]) => `Object.defineProperty(process, "${name}", { value: ${value} });`,
  );
  const disguise = `--import=data:text/javascript,${encodeURIComponent(code.join("\n"))}`;
  return { ...process.env, NODE_OPTIONS: disguise };
}
