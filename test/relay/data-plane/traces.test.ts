import { expect, it } from "vitest";
import { drainTraces } from "../../../src/relay/data-plane/traces.ts";

it("ends although new packets arrive all the time", () => {
  let passes = 0;
  const flood = () => {
    if (++passes > 1000) throw new Error("expected an end");
    return 64;
  };
  const sources = [{ id: 0, name: "jito" }];
  expect(drainTraces(flood, sources, 3)).toHaveLength(3 * 64);
  expect(passes).toBe(3);
});
