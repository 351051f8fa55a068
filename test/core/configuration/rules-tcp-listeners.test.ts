import { describe, expect, it } from "vitest";
import {
  type Config,
  configWarnings,
  parseConfig,
} from "../../../src/core/configuration/configuration.ts";
import { tcpListenersOf } from "../../../src/core/configuration/tcp-listeners.ts";
import { least, messageOf, path } from "./config-texts.ts";

const tips = `tips: { addresses: ["${"1".repeat(32)}"] }\n`;

describe("two TCP listeners", () => {
  it.each([
    [
      "a listener of HTTP twice",
      `${least}http: { split: [{ listen: "127.0.0.1:8780", serves: [tips] }] }\n`,
      /:4: http.split\[0\].listen\[0\]: duplicate address 127.0.0.1:8780 \(also http.listen\[0\]\); expected different addresses/,
    ],
    [
      "a listener that all addresses include",
      `${least}http: { listen: "0.0.0.0:8780" }\noperations: { listen: ["127.0.0.1:8780"] }\n`,
      /operations.listen\[0\]: duplicate address 127.0.0.1:8780 \(also http.listen\[0\] 0.0.0.0:8780\)/,
    ],
    [
      "a listener of both families",
      `${least}http: { listen: ["0.0.0.0:8780", "[::]:8780"] }\n`,
      /http.listen\[1\]: duplicate address \[::\]:8780 \(also http.listen\[0\] 0.0.0.0:8780\)/,
    ],
    [
      "a listener of decoded streams at a port of HTTP",
      `${least}http: {}\nstreams: { listen: "127.0.0.1:8780" }\n`,
      /streams.listen: duplicate address 127.0.0.1:8780 \(also http.listen\[0\]\)/,
    ],
    [
      "a listener of subscribers at a port of operations",
      `${least}operations: { listen: ["127.0.0.1:9100"] }\nshredstream: { listen: "127.0.0.1:9100", subscribers: [] }\n`,
      /shredstream.listen: duplicate address 127.0.0.1:9100 \(also operations.listen\[0\]\)/,
    ],
  ])("are rejected: %s", (_, text, expected) => {
    expect(messageOf(text)).toMatch(expected);
  });

  it.each([
    ["port 0", 'http: { listen: ["127.0.0.1:0", "127.0.0.1:0"] }'],
    [
      "two addresses",
      'http: { listen: "127.0.0.1:8780" }\noperations: { listen: ["127.0.0.2:8780"] }',
    ],
    ["both families", 'http: { listen: ["127.0.0.1:8780", "[::1]:8780"] }'],
    [
      "HTTP and WebSockets",
      'http: { listen: "127.0.0.1:8780", webSocketListen: ["127.0.0.1:8780"] }',
    ],
    ["HTTPS at its next port", 'http: { listen: ["127.0.0.1:8780", "127.0.0.1:8781"] }'],
  ])("are accepted: %s", (_, text) => {
    expect(messageOf(`${least}${tips}${text}\n`)).toBe("accepted");
  });
});

describe("a listener at the port after http.listen", () => {
  const parse = (lines: string) => parseConfig(`${least}${tips}${lines}\n`, path);

  const portWarnings = (config: Config) =>
    configWarnings(config).filter((text) => text.includes("the port after"));

  it("keeps the port, with a warning for the clients that need it", () => {
    const config = parse('http: { split: [{ listen: "127.0.0.1:8781", serves: [tips] }] }');
    expect(config.http?.webSocketListen).toEqual([]);
    expect(tcpListenersOf(config).map(({ address, key }) => `${address} ${key}`)).toEqual([
      "127.0.0.1:8780 http.listen",
      "127.0.0.1:8781 http.split[0].listen",
    ]);
    expect(portWarnings(config)).toEqual([
      "configuration: http.split[0].listen[0] is 127.0.0.1:8781, the port after http.listen, where " +
        "@solana/web3.js opens its WebSocket; so these clients get no WebSocket: change this port, or set " +
        "http.webSocketListen",
    ]);
  });

  it("needs no warning if it serves the same endpoints", () => {
    const config = parse('http: { listen: ["127.0.0.1:8780", "0.0.0.0:8781"] }');
    expect(config.http?.webSocketListen).toEqual([]);
    expect(portWarnings(config)).toEqual([]);
    expect(parse("http: {}").http?.webSocketListen).toBeUndefined();
  });
});
