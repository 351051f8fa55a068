// Which hosts are this machine, by their text.

import { expect, it } from "vitest";
import { isLoopbackHost } from "../../../src/core/addresses/loopback-host.ts";

it.each(["localhost", "LOCALHOST", "127.0.0.1", "127.9.9.9", "::1", "[::1]"])("%s is", (host) => {
  expect(isLoopbackHost(host)).toBe(true);
});

it.each(["localhost.example", "127.0.0.1.example", "127.0.0", "10.0.0.1", "::2", "[::]", ""])(
  "%s is not",
  (host) => {
    expect(isLoopbackHost(host)).toBe(false);
  },
);
