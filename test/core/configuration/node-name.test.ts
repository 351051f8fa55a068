import { expect, it } from "vitest";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import { nodeNameOf } from "../../../src/core/configuration/node-name.ts";

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
