import { expect, it } from "vitest";
import { nodeNameOf } from "../../src/app/node-name.ts";
import { completeConfig } from "../../src/core/configuration/configuration.ts";

it.each([
  ["fra-1.example.com", "fra-1.example.com"],
  ["Büro rechner", "B-ro-rechner"],
  ["-_.node 7", "node-7"],
  ["ü", "node"],
  ["", "node"],
  ["x".repeat(80), "x".repeat(64)],
])("derives a valid name from host %j: %j", (hostName, expected) => {
  expect(nodeNameOf(undefined, hostName)).toBe(expected);
  const relay = { shredVersion: 1, authentication: "off" as const };
  expect(() => completeConfig({ relay, data: { node: expected } })).not.toThrow();
});

it("uses the configured name", () => {
  expect(nodeNameOf("b", "a")).toBe("b");
});
