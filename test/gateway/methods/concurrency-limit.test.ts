import { describe, expect, it } from "vitest";
import { ConcurrencyLimit } from "../../../src/gateway/methods/concurrency-limit.ts";
import { deferred } from "../http/clients.ts";

describe("ConcurrencyLimit", () => {
  it("refuses excess work without starting it, and releases its slot on success and failure", async () => {
    const limit = new ConcurrencyLimit(2);
    const [first, second] = [deferred<number>(), deferred<number>()];
    const one = limit.with(() => first.promise);
    const two = limit.with(() => second.promise);
    let begun = 0;
    const count = () => ++begun;
    await expect(limit.with(count)).rejects.toMatchObject({ reason: "overloaded" });
    expect(begun).toBe(0);
    first.reject(new Error("no"));
    await expect(one).rejects.toThrow("no");
    expect(await limit.with(count)).toBe(1);
    second.resolve(2);
    expect(await two).toBe(2);
    expect(await limit.with(count)).toBe(2);
  });
});
