import { describe, expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { EndpointCache } from "../../../src/core/addresses/endpoint-cache.ts";

describe("EndpointCache", () => {
  it("returns the result of parseEndpoint, parsed once, and one text for all spellings", () => {
    const cache = new EndpointCache(10);
    for (const text of ["192.0.2.1:9", "[2001:db8:0::1]:9", "[::ffff:192.0.2.1]:9"])
      expect(cache.get(text)).toMatchObject(parseEndpoint(text));
    expect(cache.get("192.0.2.1:9")).toBe(cache.get("192.0.2.1:9"));
    expect(cache.get("[::ffff:192.0.2.1]:9").canonical).toBe("192.0.2.1:9");
    expect(cache.get("[2001:db8:0::1]:9").canonical).toBe("[2001:db8::1]:9");
  });

  it("rejects an invalid endpoint each time, and caches nothing of it", () => {
    const cache = new EndpointCache(10);
    for (const text of ["192.0.2.1", "192.0.2.1:0", "192.0.2.1:0", "example.org:9"])
      expect(() => cache.get(text)).toThrow(/expected an address and port/);
    expect(cache.size).toBe(0);
  });

  it("is bounded", () => {
    const cache = new EndpointCache(10);
    for (let port = 1; port <= 1000; port++) {
      expect(cache.get(`192.0.2.1:${port}`).port).toBe(port);
      expect(cache.size).toBeLessThanOrEqual(10);
    }
    expect(cache.get("192.0.2.1:1").port).toBe(1);
  });
});
