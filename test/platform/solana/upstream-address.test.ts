// Addresses of nodes: as derived by web3.js, and masked in messages.

import { describe, expect, it } from "vitest";
import { httpAddress, webSocketAddress } from "../../../src/platform/solana/upstream-address.ts";

describe("webSocketAddress", () => {
  it.each([
    ["http://node.example", undefined, "ws://node.example"],
    ["https://node.example/path?key=1", undefined, "wss://node.example"],
    ["http://127.0.0.1:8899", undefined, "ws://127.0.0.1:8900"],
    ["http://[::1]:8899", undefined, "ws://[::1]:8900"],
    ["https://node.example:443/", undefined, "wss://node.example:444"],
    ["http://user:1234@node.example:8899/", undefined, "ws://node.example:8900"],
    ["http://user:1234@node.example/", undefined, "ws://node.example"],
    ["http://node.example:8899", "wss://other.example:1/x", "wss://other.example:1"],
  ])("%s with %s is %s", (rpc, websocket, origin) => {
    expect(webSocketAddress(rpc, websocket).origin).toBe(origin);
  });

  it("retains path and query", () => {
    expect(webSocketAddress("https://node.example/path?key=1").path).toBe("/path?key=1");
  });

  it("rejects port 65535 and other schemes", () => {
    expect(() => webSocketAddress("http://node.example:65535")).toThrow("65535");
    expect(() => webSocketAddress("http://node.example", "http://node.example")).toThrow("wss");
    expect(() => httpAddress("ws://node.example")).toThrow("https");
  });
});

describe("httpAddress", () => {
  it("sends user and password as a header, and never quotes them", () => {
    const address = httpAddress("https://someone:pass%20word@node.example/key-in-path?k=%zz-query");
    expect(address.headers["authorization"]).toBe(
      `Basic ${Buffer.from("someone:pass word").toString("base64")}`,
    );
    expect(address.origin + address.path).not.toContain("someone");
    expect(address.mask("someone pass word key-in-path %zz-query node.example")).toBe(
      "[masked] [masked] [masked] [masked] node.example",
    );
  });
});
