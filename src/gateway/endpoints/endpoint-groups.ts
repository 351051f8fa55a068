// Faces: what a listener shows. Which part of the service does a path belong to?
//
// A configuration may put the faces of the one HTTP service on several listeners. A path of a face that a
// listener does not serve is as unknown there as one that does not exist.

export const endpointGroups = ["gateway", "tips", "tracker", "portal"] as const;
export type EndpointGroup = (typeof endpointGroups)[number];

/** Every listener answers them: balancers and Prometheus ask each of them. */
const everywhere: ReadonlySet<string> = new Set([
  "/gethealth",
  "/health/live",
  "/health/ready",
  "/metrics",
]);
const beginnings: readonly (readonly [string, EndpointGroup])[] = [
  ["/tip_floor", "tips"],
  ["/tip_stream", "tips"],
  ["/api/alt_validators", "tracker"],
  ["/api/next_alt_validator", "tracker"],
  ["/portal", "portal"],
];

function beginsWith(path: string, beginning: string): boolean {
  return path === beginning || path.startsWith(`${beginning}/`);
}

/** null: every one. What belongs to no other face is the gateway's. */
function faceOf(path: string): EndpointGroup | null {
  if (everywhere.has(path)) return null;
  return beginnings.find(([beginning]) => beginsWith(path, beginning))?.[1] ?? "gateway";
}

export function isServed(path: string, served: ReadonlySet<EndpointGroup>): boolean {
  const face = faceOf(path);
  return face === null || served.has(face);
}
