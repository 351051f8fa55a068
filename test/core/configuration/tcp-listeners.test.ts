// The TCP listeners of configurations: written, derived and absent ones.

import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import {
  describeListenerKey,
  tcpListenersOf,
} from "../../../src/core/configuration/tcp-listeners.ts";

const least = `relay: { listen: "127.0.0.1:0", shredVersion: 1, authentication: off }
tips: { addresses: ["11111111111111111111111111111112"] }
`;
const listeners = (more: string) => tcpListenersOf(parseConfig(least + more, "/etc/a.yaml"));
const shown = (more: string) =>
  listeners(more).map((listener) => `${listener.address} ${describeListenerKey(listener)}`);
const files = "certificate: c.pem, key: k.pem";

describe("tcpListenersOf", () => {
  it("is empty for a relay without listeners over TCP", () => {
    expect(listeners("")).toEqual([]);
  });

  it("lists every section with its key, and the derived ports", () => {
    const sections = [
      `http: { listen: ["127.0.0.1:8780", "[::1]:8780"], tls: { ${files}, listen: "0.0.0.0:8443" }, split: [`,
      `  { listen: "10.0.0.1:1", serves: [tips] }, { listen: ["10.0.0.1:2", "10.0.0.1:3"], serves: [portal] }] }`,
      'operations: { listen: ["10.0.0.1:9780", "10.0.0.2:9780"] }',
      "streams: {}",
      "shredstream: {}",
    ];
    expect(shown(sections.join("\n"))).toEqual([
      "127.0.0.1:8780 http.listen",
      "[::1]:8780 http.listen",
      "127.0.0.1:8781 http.webSocketListen (default: the port after http.listen)",
      "0.0.0.0:8443 http.tls.listen",
      "0.0.0.0:8444 http.tls.listen (the port after its first address)",
      "10.0.0.1:1 http.split[0].listen",
      "10.0.0.1:2 http.split[1].listen",
      "10.0.0.1:3 http.split[1].listen",
      "10.0.0.1:9780 operations.listen",
      "10.0.0.2:9780 operations.listen",
      "0.0.0.0:10000 streams.listen",
      "0.0.0.0:10010 shredstream.listen",
    ]);
  });

  it.each([
    ['listen: "127.0.0.1:0"', ["127.0.0.1:0 http.listen"]],
    ['listen: "127.0.0.1:1", webSocketListen: []', ["127.0.0.1:1 http.listen"]],
    [
      'listen: "127.0.0.1:1", webSocketListen: ["127.0.0.1:5"]',
      ["127.0.0.1:1 http.listen", "127.0.0.1:5 http.webSocketListen"],
    ],
    // The gateway opens an address once, and errors contain its canonical form.
    [
      'listen: ["127.0.0.1:1", "127.0.0.1:2"]',
      ["127.0.0.1:1 http.listen", "127.0.0.1:2 http.listen"],
    ],
    ['listen: "[0:0::1]:443"', ["[::1]:443 http.listen"]],
  ])("http with %s", (http, expected) => {
    expect(shown(`http: { ${http} }`)).toEqual(expected);
  });

  it("reports where API keys arrive, and where TLS protects them", () => {
    const facts = (more: string) =>
      Object.fromEntries(
        listeners(more).map(({ key, takesApiKeys, hasTls }) => [key, [takesApiKeys, hasTls]]),
      );
    const split = "split: [{ listen: '127.0.0.1:5', serves: [tips, tracker] }]";
    const http = `http: { listen: "127.0.0.1:1", webSocketListen: ["127.0.0.1:3"], tls: { ${files} }, ${split} }\n`;
    expect(facts(`${http}streams: {}\nshredstream: {}\noperations: { listen: "[::]:7" }`)).toEqual({
      "http.listen": [true, false],
      "http.webSocketListen": [true, false],
      "http.tls.listen": [true, true],
      "http.split[0].listen": [false, false],
      "operations.listen": [false, false],
      "streams.listen": [true, false],
      "shredstream.listen": [false, false],
    });
    expect(
      facts(`${http}streams: { tls: { ${files} } }\nshredstream: { tls: { ${files} } }`),
    ).toEqual(
      expect.objectContaining({
        "streams.listen": [true, true],
        "shredstream.listen": [false, true],
      }),
    );
    expect(facts('http: { listen: "127.0.0.1:0", serves: [tips] }')).toEqual({
      "http.listen": [false, false],
    });
  });
});
