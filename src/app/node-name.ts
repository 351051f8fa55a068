// Node name: what is this node called among those that share a database?
//
// Asked by main-gateway.ts. The machine's name is not always a name as the configuration takes one.

const lengthMax = 64;

/** `given`: of the configuration. */
export function nodeNameOf(given: string | undefined, hostName: string): string {
  if (given !== undefined) return given;
  const cleaned = hostName.replaceAll(/[^A-Za-z0-9._-]/g, "-").replace(/^[^A-Za-z0-9]+/, "");
  return cleaned.slice(0, lengthMax) || "node";
}
