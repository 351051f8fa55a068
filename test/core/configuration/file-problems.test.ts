// All mistakes of a file are reported together, each once, in the words of the operator.

import { describe, expect, it } from "vitest";
import { least, messageOf, path } from "./config-texts.ts";

const off = "relay: { shredVersion: 1, authentication: off";
const linesOf = (text: string) =>
  messageOf(text)
    .split("\n")
    .map((line) => line.replace(`${path}:`, ""));

describe("several mistakes at once", () => {
  it("are all reported: wrong values, unknown keys, and rules between the valid keys", () => {
    const text = `relay:
  authentication: off
  workers: 0
  sources:
    - { name: b, address: bad, tier: tier-1 }
    - { name: a, address: 10.0.0.1, tier: gold }
region: nowhere
http: { listen: none }
nonces: { fundingKeyFile: a.json }
routes: [{ name: a, kind: swqos, url: "\${env:SHREDWAY_TEST_UNSET}" }, { name: b, kind: swqos }]
`;
    expect(linesOf(text)).toEqual([
      expect.stringMatching(/^1: relay.shredVersion: missing required key/),
      expect.stringMatching(/^3: relay.workers: invalid value 0/),
      expect.stringMatching(/^5: relay.sources\[0\].address: invalid value "bad"/),
      expect.stringMatching(/^6: relay.sources\[1\].tier: unknown tier "gold"/),
      expect.stringMatching(/^7: region: unknown region "nowhere"/),
      expect.stringMatching(/^8: http.listen\[0\]: invalid value "none"/),
      expect.stringMatching(/^9: nonces.fundingKeyFile: requires solana.rpc$/),
      expect.stringMatching(
        /^10: routes\[0\].url: the variable SHREDWAY_TEST_UNSET: expected a se/,
      ),
      expect.stringMatching(/^10: routes\[1\]: missing address; expected url$/),
    ]);
  });

  it("cause no further message about a value that is already reported", () => {
    // Without solana, the schedule, the nonces and the route of kind tpu would lack a node.
    const text = `relay: { shredVersion: 1 }
solana: { rpc: "rpc.example.com" }
nonces: { fundingKeyFile: a.json }
routes: [{ name: a, kind: tpu }]
`;
    expect(linesOf(text)).toEqual([expect.stringMatching(/^2: solana.rpc: URL without scheme; /)]);
    expect(
      linesOf(`${off}, tiers: [], sources: [{ name: a, address: 10.0.0.1, tier: x }] }\n`),
    ).toEqual([expect.stringMatching(/^1: relay.tiers: invalid value \[\]/)]);
    expect(linesOf("relay: 1\n")).toEqual(["1: relay: invalid value 1; expected a mapping"]);
  });
});

describe("a mistyped key", () => {
  it.each([
    [`${off}, worker: 2 }`, '1: relay.worker: unknown key "worker"; did you mean workers?'],
    [
      "relays: { shredVersion: 1, authentication: off }",
      '1: relays: unknown key "relays"; did you mean relay?',
    ],
    [
      `${off} }\ndata: { direktory: x }`,
      '2: data.direktory: unknown key "direktory"; did you mean directory?',
    ],
    [
      "relay: { shred_version: 1, authentication: off }",
      '1: relay.shred_version: unknown key "shred_version"; did you mean shredVersion?',
    ],
  ])("is reported once, with the key that was meant: %s", (text, line) => {
    expect(linesOf(`${text}\n`)).toEqual([line]);
  });

  it("does not hide mistakes in its value", () => {
    expect(linesOf("relays: { shredVersion: 1, authentication: off, workers: 0 }\n")).toEqual([
      '1: relays: unknown key "relays"; did you mean relay?',
      "1: relays.workers: invalid value 0; expected an integer 1 to 64",
    ]);
  });

  it("names the known keys if none is near", () => {
    expect(messageOf(`${off}, colour: red }\n`)).toMatch(
      /relay.colour: unknown key "colour"; expected one of the keys listen, workers, /,
    );
  });
});

describe("a misplaced key", () => {
  it("is reported with its section, if only one section has it", () => {
    const hint = (text: string) => /; this key belongs to .*$/m.exec(messageOf(text))?.[0];
    expect(hint(`${off} }\nshredVersion: 5\n`)).toBe("; this key belongs to the section relay");
    expect(hint(`${off}, minimumLamports: 5 }\n`)).toBe("; this key belongs to the section tips");
    expect(hint(`${off} }\nlisten: 127.0.0.1:1\n`)).toBeUndefined(); // of several sections
    expect(hint(`${off} }\ncolour: red\n`)).toBeUndefined();
  });
});

describe("values", () => {
  it("explains SOL where lamports are expected", () => {
    const tiers = "tiers: { thresholdLamports: { tier-1: 0.2, tier-2: 0.5 } }";
    expect(linesOf(`${least}${tiers}\n`)).toEqual([
      "4: tiers.thresholdLamports.tier-1: invalid value 0.2; expected an integer 1 to 2^53 - 1, in lamports; 0.2 SOL are 200000000 lamports",
      "4: tiers.thresholdLamports.tier-2: invalid value 0.5; expected an integer 1 to 2^53 - 1, in lamports; 0.5 SOL are 500000000 lamports",
    ]);
    expect(messageOf(`${least}tips: { minimumLamports: 0.00001 }\n`)).toMatch(
      /tips.minimumLamports: invalid value 0.00001; .*; 0.00001 SOL are 10000 lamports$/,
    );
  });

  it.each([
    ["rpc.example.com", "URL without scheme"],
    ["rpc.example.com:8899", "URL without scheme"],
    ["wss://rpc.example.com", "URL of wss"],
    ["http://[", "invalid URL"],
  ])("explains the URL %s", (url, wrong) => {
    expect(linesOf(`solana: { rpc: "${url}" }\nrelay: { shredVersion: 1 }\n`)).toEqual([
      `1: solana.rpc: ${wrong}; expected a URL of http or https, such as https://HOST/PATH`,
    ]);
  });

  it("explains an IPv6 address without brackets", () => {
    expect(messageOf(`${off}, listen: "2001:db8::10:9001" }\n`)).toMatch(
      /port 0 to 65535; an IPv6 address needs brackets: \[2001:db8::10\]:9001$/,
    );
  });
});

describe("YAML", () => {
  it("reports tabs once", () => {
    expect(linesOf("relay:\n\tworkers: 2\n\tshredVersion: 1\n\tauthentication: off\n")).toEqual([
      "2: invalid YAML: the line is indented with a tab; 2 more lines do; expected spaces",
    ]);
  });

  it.each([
    [`${off}, listen: [::]:20000 }`, 1, "[::]:20000"],
    ["relay:\n  shredVersion: 1\n  listen: [2001:db8::10]:9001", 3, "[2001:db8::10]:9001"],
  ])("explains an IPv6 address without quotes: %s", (text, line, address) => {
    expect(linesOf(`${text}\n`)).toEqual([
      `${line}: invalid YAML: ${address} without quotes is read as a list; expected it in quotes: "${address}"`,
    ]);
  });
});
