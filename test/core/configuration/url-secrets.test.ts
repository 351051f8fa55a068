// Secrets of a partner, in all forms in which they may return in a text.

import { describe, expect, it } from "vitest";
import { basicAuthorization, maskerOf } from "../../../src/core/configuration/url-secrets.ts";
import { openRoute } from "../../../src/gateway/routes/open-route.ts";
import { RpcClient } from "../../../src/platform/solana/rpc-client.ts";
import { ManualClock } from "../../support/clocks/manual-clock.ts";
import { routeConfig, TestOutbound } from "../../support/gateway/partner.ts";
import { fakeFacts } from "../../support/transactions/facts.ts";

describe("a text about a partner", () => {
  const url = new URL("https://us%40er:pass%2Fword@host/v1/path-key?api-key=query%20key&x=%25");
  const mask = maskerOf(url, { "x-key": "header-key", Authorization: "Bearer bearer-key" });

  it.each([
    "us@er",
    "us%40er",
    "pass/word",
    "pass%2Fword",
    "path-key",
    "query key",
    "query%20key",
    "header-key",
    "Bearer bearer-key",
    "bearer-key",
    Buffer.from("us@er:pass/word").toString("base64"),
  ])("does not contain %j", (secret) => {
    expect(mask(`before ${secret} after`)).toBe("before [masked] after");
  });

  it("accepts URLs with a lone percent sign", () => {
    const invalidUrl = new URL("http://us%er:pa%ss@host/100%key?k=50%off");
    expect(maskerOf(invalidUrl)("asked /100%key?k=50%off")).toBe("asked /[masked]?k=[masked]");
    expect(basicAuthorization(invalidUrl)).toBe(
      `Basic ${Buffer.from("us%er:pa%ss").toString("base64")}`,
    );
    expect(() => new RpcClient(invalidUrl.href)).not.toThrow();
  });

  it("preserves text that is not secret", () => {
    expect(mask("v1 of host: x is %")).toBe("v1 of host: x is %");
    expect(maskerOf(new URL("http://host/%"), {})("a text")).toBe("a text");
  });

  it("is masked before it is shown", async () => {
    const route = openRoute(
      routeConfig({ kind: "swqos", url: "http://partner.invalid", headers: { x: "ENOTFOUND" } }),
      { clock: new ManualClock() },
    );
    const outbound = new TestOutbound([fakeFacts(1)]);
    route.offer(outbound);
    await outbound.ended;
    const { lastFailure } = route.snapshot();
    expect(lastFailure).toContain("partner.invalid: name_unknown: [masked]");
    expect(lastFailure).not.toContain("ENOTFOUND");
    await route.close();
  });
});

describe("the user of a URL", () => {
  it("becomes basic authorization", () => {
    expect(basicAuthorization(new URL("http://host"))).toBeNull();
    const basic = `Basic ${Buffer.from("a:b%").toString("base64")}`;
    expect(basicAuthorization(new URL("http://a:b%@host"))).toBe(basic);
  });
});
