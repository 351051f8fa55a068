import { expect, it } from "vitest";
import { configWarnings, parseConfig } from "../../../src/core/configuration/configuration.ts";

it("accepts the former name of a renamed key for one release, with one warning", () => {
  const relay = "relay: { shredVersion: 1, authentication: off }\n";
  const http = `http: {}\ntips: { addresses: ["${"1".repeat(32)}"] }\nregions: [{ name: fra }]\n`;
  const parse = (gateway: string) =>
    parseConfig(`${relay}gateway: ${gateway}\n${http}`, "/a/b.yaml");
  const former = parse('{ frontKeyPrefixes: ["abcd"], burst: 3 }');
  expect(former.gateway).toMatchObject({ dontFrontPrefixes: ["abcd"], burst: 3 });
  expect(former.gateway).not.toHaveProperty("frontKeyPrefixes");
  expect(configWarnings(former)).toEqual([
    "configuration: gateway.frontKeyPrefixes is now gateway.dontFrontPrefixes; " +
      "rename it, because the next release rejects the former name",
  ]);
  expect(configWarnings(parse('{ dontFrontPrefixes: ["abcd"] }'))).toEqual([]);
  expect(() => parse('{ dontFrontPrefixes: ["abcd"], frontKeyPrefixes: ["efgh"] }')).toThrow(
    "/a/b.yaml:2: gateway.frontKeyPrefixes: expected gateway.dontFrontPrefixes only, " +
      "got also its former name frontKeyPrefixes",
  );
});
