// The warnings of a start whose limit of open files lowers the limits of connections.

import { expect, it } from "vitest";
import { completeConfig } from "../../../src/core/configuration/configuration.ts";
import { openFilesWarnings } from "../../../src/core/configuration/connection-limits.ts";
import { pubkeyOf } from "../../../src/core/primitives.ts";

it("warns if the process may open fewer files than HTTP accepts connections", () => {
  const config = completeConfig({
    relay: { shredVersion: 1, authentication: "off" },
    http: {
      listen: "127.0.0.1:0",
      connectionsMax: 400,
      split: [{ listen: "127.0.0.1:1", serves: ["tips"] }],
    },
    tips: { addresses: [pubkeyOf(new Uint8Array(32).fill(5))] },
  });
  // 256 for the service, 800 for connections, a quarter for the fast path.
  const [warning = "", ...others] = openFilesWarnings(config, 1000);
  expect(warning).toContain(
    "http.connectionsMax is 400, but each listener accepts only 247 connections",
  );
  expect(warning).toContain("may open only 1000 files");
  expect(warning).toContain("expected a limit of at least 1408");
  expect(others).toEqual([]);
  expect(openFilesWarnings(config, 1407)).toHaveLength(1);
  expect(openFilesWarnings(config, 1408)).toEqual([]);
  expect(openFilesWarnings(config, null)).toEqual([]);
  const { http: _http, ...relayOnly } = config;
  expect(openFilesWarnings(relayOnly, 64)).toEqual([]);
  const shredstream = { listen: "127.0.0.1:0", ttlSeconds: 60, subscribers: [] };
  const blockEngine = { ...relayOnly, shredstream };
  expect(openFilesWarnings(blockEngine, 1279)).toEqual([
    expect.stringContaining("the listener accepts only 1023 connections instead of 1024"),
  ]);
  expect(openFilesWarnings(blockEngine, 1280)).toEqual([]);
});
