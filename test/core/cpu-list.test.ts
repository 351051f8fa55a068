import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { expandCpuList, formatCpuList } from "../../src/core/cpu-list.ts";

describe("expandCpuList", () => {
  it("reads the kernel's lists", () => {
    expect(expandCpuList("")).toEqual([]);
    expect(expandCpuList("0")).toEqual([0]);
    expect(expandCpuList("0-2,7")).toEqual([0, 1, 2, 7]);
  });
});

describe("formatCpuList", () => {
  it.each([
    [[], ""],
    [[5], "5"],
    [[7, 2, 0, 1], "0-2,7"],
    [[10, 9, 2], "2,9-10"],
  ])("writes %j as %j", (cpus, text) => {
    expect(formatCpuList(cpus)).toBe(text);
  });

  it("is the reverse of expandCpuList", () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.integer({ min: 0, max: 1023 })), (cpus) => {
        expect(expandCpuList(formatCpuList(cpus))).toEqual(cpus.toSorted((a, b) => a - b));
      }),
    );
  });
});
