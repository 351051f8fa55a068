// Texts of the page that depend on what the user typed, and states that it derives.

import { describe, expect, it } from "vitest";
import { pauseText, shownState } from "../../../../src/platform/portal/page/destination-state.ts";
import {
  captureCommand,
  listenCommand,
  pythonReceiver,
} from "../../../../src/platform/portal/page/receiver-commands.ts";
import { signatureProblem } from "../../../../src/platform/portal/page/signature.ts";
import { outcomeOf, tierEventText } from "../../../../src/platform/portal/page/timeline.ts";
import { duration, lamportsText, shortSol } from "../../../../src/platform/portal/page/units.ts";

describe("the commands of a receiver", () => {
  it.each([
    ["", 9001],
    ["192.0.2.10", 9001],
    ["192.0.2.10:7123", 7123],
    [" [2001:db8::1]:7124 ", 7124],
  ])("contain the port of %j", (address, port) => {
    expect(listenCommand(address)).toBe(`shredway listen --port ${port} --prove`);
    expect(captureCommand(address)).toContain(`udp dst port ${port}`);
    expect(pythonReceiver(address)).toContain(`s.bind(("", ${port}))`);
  });

  it("use the address family of the typed address", () => {
    expect(pythonReceiver("192.0.2.10:9001")).toContain("socket.AF_INET,");
    expect(pythonReceiver("[2001:db8::1]:9001")).toContain("socket.AF_INET6,");
  });
});

describe("a signature", () => {
  it("is looked up only if it can be one", () => {
    expect(signatureProblem("5".repeat(88))).toBeNull();
    expect(signatureProblem("5h6x")).toContain("it has 4 characters; expected 64 to 88");
    expect(signatureProblem("0".repeat(88))).toContain("other characters than base58");
  });
});

describe("the pause of a destination", () => {
  it.each([
    ["icmp_unreachable", "no receiver was listening there"],
    ["proof_expired", "no challenge was answered in time"],
    ["operator", "by the operator"],
    ["of_a_later_version", "of a later version"],
    [null, "reason unknown"],
  ])("is explained: %s", (reason, text) => {
    expect(pauseText(reason)).toBe(text);
  });
});

describe("the state of a destination", () => {
  const sending = (icmpLastMinute: number) => ({
    tier: "tier-1",
    sent: 5,
    sentPerSecond: 1,
    failed: 0,
    icmp: 193_707,
    icmpLastMinute,
  });

  it("is not good while its receiver is gone or nothing is sent", () => {
    const active = { state: "active", refusal: null };
    expect(shownState({ ...active, sending: sending(0) })).toBe("active");
    const gone = shownState({ ...active, sending: sending(9) });
    expect([gone, outcomeOf(gone)]).toEqual(["unreachable", "bad"]);
    expect(outcomeOf(shownState({ ...active, sending: null, refusal: "denied" }))).toBe("bad");
    expect(shownState({ state: "paused", refusal: null, sending: sending(9) })).toBe("paused");
  });
});

describe("an event of the tier history", () => {
  it("is shown in words", () => {
    const kinds = ["upgraded", "grace_started", "tip_claimed"];
    expect(kinds.map(tierEventText)).toEqual([
      "upgraded",
      "grace started",
      "tip claimed by its payer for another account",
    ]);
  });
});

describe("amounts and durations", () => {
  it("have at most four significant digits where the exact amount stands beside them", () => {
    const space = "\u00a0";
    expect([0, 1, 10_000, 123_456, 310_000_000, 1_234_567_890].map(shortSol)).toEqual(
      ["0", "0.000000001", "0.00001", "0.0001235", "0.31", "1.235"].map(
        (digits) => `${digits}${space}SOL`,
      ),
    );
    expect(lamportsText(123_456)).toBe("123,456 lamports");
    expect(duration(29.3)).toBe(`29.3${space}ms`);
  });
});
