// The UDP addresses of ownership challenges and transaction pushes, beside those of the relay and of QUIC.

import { describe, expect, it } from "vitest";
import { least, messageOf } from "./config-texts.ts";

const key = "1".repeat(32);
const gateway = `${least}http: {}\ntips: { addresses: ["${key}"] }\n`;
const selling = gateway.replace("tips: {", `tips: { shredAddresses: ["${key}"],`);
const proof = 'delivery: { proof: { listen: "0.0.0.0:20001" } }\n';
const push = 'streams: { push: { from: "192.0.2.1:20001" } }\n';

describe("two UDP addresses at one port", () => {
  it.each([
    [
      "challenges and the relay",
      selling.replace("shredVersion", 'listen: "192.0.2.1:20001"\n  shredVersion') + proof,
      "delivery.proof.listen: duplicate address 0.0.0.0:20001 (also relay.listen[0] 192.0.2.1:20001); expected",
    ],
    [
      "challenges and QUIC",
      `${selling}${proof}quic: { swqosOnlyListen: "0.0.0.0:20001" }\n`,
      "delivery.proof.listen: duplicate address 0.0.0.0:20001 (also quic.swqosOnlyListen[0]); expected",
    ],
    [
      "challenges and pushes",
      selling + proof + push,
      "streams.push.from: duplicate address 192.0.2.1:20001 (also delivery.proof.listen 0.0.0.0:20001); expected",
    ],
    [
      "challenges and pushes over IPv6",
      `${selling}delivery: { proof: { listenIpv6: "[::]:5" } }\nstreams: { push: { fromIpv6: "[::1]:5" } }\n`,
      "streams.push.fromIpv6: duplicate address [::1]:5 (also delivery.proof.listenIpv6 [::]:5); expected",
    ],
  ])("are rejected: %s", (_, text, expected) => {
    expect(messageOf(text)).toContain(expected);
  });

  it.each([
    [
      "both families",
      `${selling}delivery: { proof: { listen: "0.0.0.0:5", listenIpv6: "[::]:5" } }\n`,
    ],
    ["port 0", `${selling}streams: {}\n`],
    ["a service that sells no shreds, which opens neither", gateway + proof + push],
    ["a relay without a gateway", least + proof],
  ])("are accepted: %s", (_, text) => {
    expect(messageOf(text)).toBe("accepted");
  });
});
