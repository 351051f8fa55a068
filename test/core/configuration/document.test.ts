import { expect, it } from "vitest";
import { describeConfiguration } from "../../../src/core/configuration/document.ts";

it("matches docs/configuration.md", async () => {
  await expect(describeConfiguration()).toMatchFileSnapshot("../../../docs/configuration.md");
});
