// The check of the fast path, and that it agrees with the routes themselves.

import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { isOnFastPath } from "../../../src/core/configuration/fast-path.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import { checkFastPath } from "../../../src/platform/doctor/fast-path-checks.ts";
import { measures } from "../../../src/platform/doctor/measures.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";

const leader = "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5";
const configOf = (routes: readonly string[], gateway = "", http = "") =>
  parseConfig(
    `relay: { listen: "127.0.0.1:0", shredVersion: 9, authentication: off }
http: { listen: "127.0.0.1:0"${http} }
tips: { addresses: [ "${leader}" ] }
gateway: { ${gateway} }
routes: [ ${routes.join(", ")} ]
`,
    "a.yaml",
  );
const fast = `{ name: staked, kind: swqos, url: "http://127.0.0.1:1/" }`;
const overTls = `{ name: remote, kind: swqos, url: "https://127.0.0.1:1/" }`;

describe("checkFastPath", () => {
  it("finds nothing without routes", () => {
    expect(checkFastPath(configOf([]))).toEqual([]);
  });

  it("names the routes", () => {
    expect(checkFastPath(configOf([overTls, fast]))).toMatchObject([
      { check: "fast-path", level: "ok", finding: "used for staked", measure: null },
    ]);
  });

  it("says what prevents it", () => {
    expect(checkFastPath(configOf([overTls]))).toMatchObject([
      {
        level: "warn",
        finding:
          "no route can be used: every partner is reached with TLS or over QUIC, or gets bundles or other formats only",
        measure: measures["fast-path"],
      },
    ]);
    expect(checkFastPath(configOf([fast], "", ", engine: uws"))).toMatchObject([
      {
        level: "warn",
        finding: "off, because http.engine is uws",
        remedy: "set http.engine: node",
      },
    ]);
    expect(checkFastPath(configOf([fast], "fastPath: false"))).toMatchObject([
      { level: "ok", finding: "off: gateway.fastPath is false" },
    ]);
  });

  it.each([
    [true, fast],
    [false, overTls],
    [true, `{ name: staked, kind: swqos, url: "HTTP://127.0.0.1:1/" }`],
    [true, `{ name: builder, kind: block-builder, url: "http://127.0.0.1:1/api/v1" }`],
    [
      false,
      `{ name: builder, kind: block-builder, url: "http://127.0.0.1:1/", transactions: false }`,
    ],
    [true, `{ name: scheduler, kind: scheduler, url: "http://127.0.0.1:1/" }`],
    [false, `{ name: scheduler, kind: scheduler, format: bytes, url: "http://127.0.0.1:1/" }`],
    [false, `{ name: scheduler, kind: scheduler, format: base64, url: "http://127.0.0.1:1/" }`],
    [
      false,
      `{ name: partner, kind: alt-partner, leaders: { "${leader}": "http://127.0.0.1:1/" } }`,
    ],
  ])("and the routes agree: %s for %s", async (isUsed, text) => {
    const [route] = configOf([text]).routes;
    if (!route) throw new Error("expected a route");
    let opened = 0;
    const fastPath = {
      openRoute: () => {
        opened++;
        return null;
      },
    };
    await openRoute(route, { clock: new ManualClock(), fastPath }).close();
    expect(isOnFastPath(route)).toBe(isUsed);
    expect(opened).toBe(isUsed ? 1 : 0);
  });
});
