// The check of the fast path: whether any request can be taken. Pure.
//
// Called by src/tools/commands/doctor.ts with a configuration. docs/fast-path.md has all conditions; this
// check covers those that a configuration decides.

import type { Config } from "../../core/configuration/configuration.ts";
import { isOnFastPath } from "../../core/configuration/fast-path.ts";
import { about, type Finding, type Found, withMeasure } from "./finding.ts";

type CheckedConfig = Pick<Config, "http" | "gateway" | "routes">;

/** No finding without an HTTP server or routes. */
export function checkFastPath({ http, gateway, routes }: CheckedConfig): Finding[] {
  if (!http || routes.length === 0) return [];
  const { ok, warn } = about(
    "fast-path",
    "On the fast path, a transaction leaves before JavaScript reads its request, which takes half of the time.",
  );
  const find = (): Found => {
    if (!gateway.fastPath) return ok("off: gateway.fastPath is false");
    if (http.engine === "uws") {
      return warn("off, because http.engine is uws", "set http.engine: node");
    }
    const names = routes.filter(isOnFastPath).map(({ name }) => name);
    if (names.length === 0) {
      return warn(
        "no route can be used: every partner is reached with TLS or over QUIC, or gets bundles or other formats only",
        "use a URL with http: for partners that offer it",
      );
    }
    const exception = http.tls ? "; requests over TLS (http.tls) are not taken" : "";
    return ok(`used for ${names.join(", ")}${exception}`);
  };
  return [withMeasure(find())];
}
