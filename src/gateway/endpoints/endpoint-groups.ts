// Endpoint groups: assigns paths to the listeners that serve them.
//
// The configuration may assign the endpoint groups of the service to several listeners. A listener
// treats paths of other groups as unknown.

export const endpointGroups = ["gateway", "tips", "tracker", "portal"] as const;
export type EndpointGroup = (typeof endpointGroups)[number];

/** Every listener serves these paths: for load balancers, Prometheus, and the verification of signatures. */
const everywhere: ReadonlySet<string> = new Set([
  "/.well-known/shredway-keys.json",
  "/gethealth",
  "/health/live",
  "/health/ready",
  "/metrics",
]);
const prefixes: readonly (readonly [string, EndpointGroup])[] = [
  ["/tip_floor", "tips"],
  ["/tip_stream", "tips"],
  ["/api/v1/bundles/tip_floor", "tips"],
  ["/api/alt_validators", "tracker"],
  ["/api/next_alt_validator", "tracker"],
  ["/portal", "portal"],
];

function hasPrefix(path: string, prefix: string): boolean {
  return path === prefix || path.startsWith(`${prefix}/`);
}

/** null: all groups. Paths of no other group belong to the gateway. */
function groupOf(path: string): EndpointGroup | null {
  if (everywhere.has(path)) return null;
  return prefixes.find(([prefix]) => hasPrefix(path, prefix))?.[1] ?? "gateway";
}

export function isServed(path: string, served: ReadonlySet<EndpointGroup>): boolean {
  const group = groupOf(path);
  return group === null || served.has(group);
}
