// Kinds of sources: their defaults, and the rules of multicast sources.
//
// Used by rules.ts, the relay, the doctor and the command line. Pure.

import { parseEndpoint } from "../addresses/addresses.ts";
import { parseGroup } from "../addresses/multicast-addresses.ts";

/** The interface of DoubleZero's daemon, and the port of its groups. */
export const defaultGroupInterface = "doublezero1";
export const defaultGroupPort = 7733;

interface AnySource {
  readonly kind?: string;
  readonly forward?: boolean;
  readonly port?: number;
  readonly groups?: readonly string[];
  readonly interface?: string;
  readonly address?: string;
}

export function isMulticastSource({ kind }: AnySource): boolean {
  return kind === "multicast";
}

/** Multicast feeds may usually not be passed on (DoubleZero's terms, section 2(e)). */
export function isForwardedSource(source: AnySource): boolean {
  return source.forward ?? !isMulticastSource(source);
}

/** Interface and port of a multicast source. */
export function groupPlaceOf(source: AnySource): {
  readonly interface: string;
  readonly port: number;
} {
  return {
    interface: source.interface ?? defaultGroupInterface,
    port: source.port ?? defaultGroupPort,
  };
}

/** "IP address" or "range", port; for lists and messages. */
export function describeOrigin(source: AnySource): string {
  if (isMulticastSource(source)) {
    const place = groupPlaceOf(source);
    const groups = source.groups?.join(", ") ?? "every group with a route";
    return `${groups} on ${place.interface} to port ${place.port}`;
  }
  return `${source.address ?? "any address"}${source.port === undefined ? "" : ` to port ${source.port}`}`;
}

interface SourceProblem {
  readonly index: number;
  readonly key?: "address" | "groups" | "interface" | "port";
  readonly message: string;
}

function problemsOfOne(
  source: AnySource,
  index: number,
  ports: readonly number[],
): SourceProblem[] {
  const problems: SourceProblem[] = [];
  if (!isMulticastSource(source)) {
    for (const key of ["groups", "interface"] as const) {
      if (source[key] === undefined) continue;
      problems.push({ index, key, message: "only a source with kind: multicast has this key" });
    }
    return problems;
  }
  if (source.address !== undefined) {
    const message =
      "the groups identify a source with kind: multicast, not the senders; remove this key";
    problems.push({ index, key: "address", message });
  }
  const { port } = groupPlaceOf(source);
  if (ports.includes(port)) {
    const message = `port ${port} is also a port of relay.listen; expected a port of its own for multicast groups`;
    problems.push({ index, key: "port", message });
  }
  return problems;
}

/** Problems of the keys that belong to a kind of sources, by position in relay.sources. */
export function sourceKindProblems(
  sources: readonly AnySource[],
  listen: readonly string[],
): SourceProblem[] {
  const ports = listen.map((text) => parseEndpoint(text, { allowPortZero: true }).port);
  const problems = sources.flatMap((source, index) => problemsOfOne(source, index, ports));
  const firstOf = new Map<string, number>();
  for (const [index, source] of sources.entries()) {
    if (!isMulticastSource(source)) continue;
    const place = groupPlaceOf(source);
    for (const group of source.groups ?? ["*"]) {
      // A source without groups takes those of its interface that no other source names.
      const where = group === "*" ? `${place.interface}:*` : parseGroup(group);
      const key = `${where}:${place.port}`;
      const first = firstOf.get(key);
      firstOf.set(key, first ?? index);
      if (first === undefined) continue;
      const what =
        group === "*"
          ? `the groups of ${place.interface} on port ${place.port} also belong`
          : `group ${group} on port ${place.port} also belongs`;
      const message = `${what} to sources[${first}]; expected different groups`;
      problems.push({ index, ...(group !== "*" && { key: "groups" as const }), message });
    }
  }
  return problems;
}
