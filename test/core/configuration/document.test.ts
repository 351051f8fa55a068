import { expect, it } from "vitest";
import { describeConfiguration } from "../../../src/core/configuration/document.ts";

it("keeps docs/configuration.md current", async () => {
  await expect(describeConfiguration()).toMatchFileSnapshot("../../../docs/configuration.md");
});
