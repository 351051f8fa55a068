// The check of decoded streams, with and without a node.

import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { measures } from "../../../src/platform/doctor/measures.ts";
import { checkStreamNode } from "../../../src/platform/doctor/stream-checks.ts";

const least = `relay: { listen: "127.0.0.1:0", shredVersion: 9, authentication: off }
http: { listen: "127.0.0.1:0" }
tips: { addresses: [ "96gYZGLnJYVFmbjzopPSU6QiEV5fGqZNyN9nmNhvrZU5" ] }
`;
const findings = (more: string) => checkStreamNode(parseConfig(least + more, "a.yaml"));
const streams = `streams: { listen: "127.0.0.1:0" }\n`;

describe("checkStreamNode", () => {
  it("finds nothing without the section streams", () => {
    expect(findings("")).toEqual([]);
  });

  it("warns about unresolved lookup tables without a node", () => {
    expect(findings(streams)).toMatchObject([
      {
        check: "stream-lookups",
        level: "warn",
        finding: "address lookup tables are not resolved, because solana.rpc is not configured",
        measure: measures["stream-lookups"],
      },
    ]);
    expect(findings(`${streams}solana: { rpc: "http://127.0.0.1:1" }\n`)).toMatchObject([
      { check: "stream-lookups", level: "ok", remedy: null, measure: null },
    ]);
  });
});
