import { createSocket } from "node:dgram";
import { once } from "node:events";
import { createServer } from "node:net";
import { describe, expect, it } from "vitest";
import { parseEndpoint } from "../../../src/core/addresses/addresses.ts";
import { excludeEachOther } from "../../../src/core/addresses/bound-endpoints.ts";

const addresses = ["127.0.0.1", "127.0.0.2", "0.0.0.0", "::1", "::"] as const;
const pairs = addresses.flatMap((one) => addresses.map((other) => [one, other] as const));

function endpointAt(address: string, port: number) {
  return parseEndpoint(address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`);
}

/** Whether the system refuses the second TCP listener. */
async function refusesTcp(one: string, other: string): Promise<[port: number, isRefused: boolean]> {
  const first = createServer().listen(0, one);
  await once(first, "listening");
  const bound = first.address();
  const port = typeof bound === "object" && bound ? bound.port : 0;
  const second = createServer().listen(port, other);
  const isRefused = await Promise.race([
    once(second, "listening").then(() => false),
    new Promise<boolean>((resolve) => second.once("error", () => resolve(true))),
  ]);
  second.close();
  first.close();
  return [port, isRefused];
}

/** The same for UDP sockets that take one family. */
async function refusesUdp(one: string, other: string): Promise<[port: number, isRefused: boolean]> {
  const open = (address: string) =>
    address.includes(":")
      ? createSocket({ type: "udp6", ipv6Only: true })
      : createSocket({ type: "udp4" });
  const first = open(one);
  first.bind(0, one);
  await once(first, "listening");
  const { port } = first.address();
  const second = open(other);
  const outcome = new Promise<boolean>((resolve) => {
    second.once("listening", () => resolve(false));
    second.once("error", () => resolve(true));
  });
  second.bind(port, other);
  const isRefused = await outcome;
  second.close();
  first.close();
  return [port, isRefused];
}

describe("two bound endpoints", () => {
  it.each(pairs)("exclude each other as the system says: TCP at %s and %s", async (one, other) => {
    const [port, isRefused] = await refusesTcp(one, other);
    const binding = { takesBothFamilies: true };
    expect(excludeEachOther(endpointAt(one, port), endpointAt(other, port), binding)).toBe(
      isRefused,
    );
  });

  it.each(pairs)("exclude each other as the system says: UDP at %s and %s", async (one, other) => {
    const [port, isRefused] = await refusesUdp(one, other);
    const binding = { takesBothFamilies: false };
    expect(excludeEachOther(endpointAt(one, port), endpointAt(other, port), binding)).toBe(
      isRefused,
    );
  });

  it("do not exclude each other at two ports, nor at port 0", () => {
    const binding = { takesBothFamilies: true };
    const at = (text: string) => parseEndpoint(text, { allowPortZero: true });
    expect(excludeEachOther(at("0.0.0.0:1"), at("0.0.0.0:2"), binding)).toBe(false);
    expect(excludeEachOther(at("0.0.0.0:0"), at("0.0.0.0:0"), binding)).toBe(false);
  });
});
