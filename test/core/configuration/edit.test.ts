// Edits of a configuration's text: changed, unchanged and rejected parts.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { parseConfig } from "../../../src/core/configuration/configuration.ts";
import { withoutSource, withSource } from "../../../src/core/configuration/edit.ts";
import { ShredwayError } from "../../../src/core/errors.ts";

const text = `# our two relays
relay:
  authentication: off # for a moment
  shredVersion: 50093
  sources:
    # the first
    - { name: fra-a, address: 10.0.0.0/24, tier: tier-1 }
    - name: fra-b
      address: 10.0.1.7 # one machine
      tier: tier-2
  destinations: []
`;

const namesOf = (edited: string) =>
  parseConfig(edited, "c.yaml").relay.sources.map(({ name }) => name);

describe("withSource", () => {
  it("adds a source at the end and changes nothing else", () => {
    const edited = withSource(text, "c.yaml", {
      name: "nyc-a",
      address: "10.0.2.0/24",
      tier: "tier-2",
    });
    expect(namesOf(edited)).toEqual(["fra-a", "fra-b", "nyc-a"]);
    const added = /^ *- \{ "?name"?: "?nyc-a"?.*\n/m.exec(edited)?.[0] ?? "";
    expect(edited.replace(added, "")).toBe(text);
  });

  it("writes in the style of the file, without needless quotes", () => {
    const source = { name: "nyc-a", address: "10.0.2.0/24", tier: "tier-2" };
    expect(withSource(text, "c.yaml", source)).toContain(
      "\n    - { name: nyc-a, address: 10.0.2.0/24, tier: tier-2 }\n",
    );
    const block = text.replace(
      "{ name: fra-a, address: 10.0.0.0/24, tier: tier-1 }",
      "name: fra-a\n      port: 20000\n      tier: tier-1",
    );
    expect(withSource(block, "c.yaml", source)).toContain(
      "\n    - name: nyc-a\n      address: 10.0.2.0/24\n      tier: tier-2\n",
    );
  });

  it("preserves the comment after the list's key, on its own line", () => {
    const commented = text.replace("  sources:\n", "  sources: # who sends\n");
    const source = { name: "nyc-a", address: "10.0.2.0/24", tier: "tier-2" };
    expect(withSource(commented, "c.yaml", source)).toMatch(/sources:\n +# who sends\n/);
  });

  it("creates a missing list, also in a one-line mapping", () => {
    const source = { name: "a", address: "10.0.0.1", tier: "tier-1" };
    expect(
      namesOf(withSource("relay: { authentication: off, shredVersion: 1 }\n", "c.yaml", source)),
    ).toEqual(["a"]);
    const flow =
      "relay: { authentication: off, shredVersion: 1, sources: [ { name: b, address: 10.0.0.2, tier: tier-1 } ] }\n";
    expect(namesOf(withSource(flow, "c.yaml", source))).toEqual(["b", "a"]);
  });

  it.each([
    [{ name: "fra-a", address: "10.9.0.0/24", tier: "tier-1" }, 'duplicate name "fra-a"'],
    [{ name: "x", address: "10.0.0.0/24", tier: "tier-1" }, "same address and port as sources[0]"],
    [{ name: "x", address: "10.0.0.5/24", tier: "tier-1" }, "the first address of the range"],
    [{ name: "x", address: "10.9.0.0/24", tier: "tier-9" }, "expected a tier of relay.tiers"],
    [{ name: "x", port: 1, tier: "tier-1" }, "expected a port of relay.listen"],
  ])("rejects an invalid source: %j", (source, message) => {
    expect(() => withSource(text, "c.yaml", source)).toThrow(message);
  });

  it("rejects an invalid file, and a list with an alias", () => {
    const source = { name: "a", address: "10.0.0.1", tier: "tier-1" };
    expect(() => withSource("relay: { nonsense: 1 }", "c.yaml", source)).toThrow(ShredwayError);
    const alias = `relay: { authentication: off, shredVersion: 1, destinations: &d [], sources: *d }\n`;
    expect(() => withSource(alias, "c.yaml", source)).toThrow(
      "an alias or a list with an anchor cannot be changed",
    );
  });
});

describe("withoutSource", () => {
  it("removes a source and changes nothing else", () => {
    const edited = withoutSource(text, "c.yaml", "fra-b");
    expect(edited).toBe(text.replace(/ {4}- name: fra-b\n.*\n.*\n/, ""));
  });

  it("lists the known sources in its error", () => {
    expect(() => withoutSource(text, "c.yaml", "x")).toThrow(
      'source: unknown name "x"; expected one of fra-a, fra-b',
    );
  });

  it("undoes withSource for any source", () => {
    const source = fc.record({
      name: fc.stringMatching(/^[a-z][a-z0-9-]{0,20}$/).filter((name) => !name.startsWith("fra-")),
      address: fc.ipV4().filter((address) => !address.startsWith("10.0.")),
      tier: fc.constantFrom("tier-1", "tier-2"),
    });
    fc.assert(
      fc.property(source, (added) => {
        const edited = withSource(text, "c.yaml", added);
        expect(parseConfig(edited, "c.yaml").relay.sources.at(-1)).toMatchObject(added);
        expect(withoutSource(edited, "c.yaml", added.name)).toBe(text);
      }),
      { numRuns: 50 },
    );
  });
});
