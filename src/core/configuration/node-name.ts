// Node name: identifies this node among those that share a database.
//
// The default is the host name, with invalid characters replaced.

const lengthMax = 64;

/** `given`: the name from the configuration. */
export function nodeNameOf(given: string | undefined, hostName: string): string {
  if (given !== undefined) return given;
  const cleaned = hostName.replaceAll(/[^A-Za-z0-9._-]/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return cleaned.slice(0, lengthMax) || "node";
}
