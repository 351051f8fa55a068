import { describe, expect, it } from "vitest";
import { least, messageOf } from "./config-texts.ts";

const tips = `tips: { addresses: ["${"1".repeat(32)}"] }\n`;

describe("two TCP listeners", () => {
  it.each([
    [
      "a listener of HTTP twice",
      `${least}http: { split: [{ listen: "127.0.0.1:8780", serves: [tips] }] }\n`,
      /:4: http.split\[0\].listen\[0\]: duplicate address 127.0.0.1:8780 \(also http.listen\[0\]\); expected different addresses/,
    ],
    [
      "a listener at the derived port of WebSockets",
      `${least}http: { split: [{ listen: "127.0.0.1:8781", serves: [tips] }] }\n`,
      /http.split\[0\].listen\[0\]: duplicate address 127.0.0.1:8781 \(also http.webSocketListen\)/,
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
