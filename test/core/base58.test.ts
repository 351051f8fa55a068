// Base58 of the control plane compared with the native one.

import fc from "fast-check";
import { expect, it } from "vitest";
import { decodeBase58, encodeBase58 } from "../../src/core/base58.ts";
import * as native from "../../src/relay/data-plane/base58.ts";

it("agrees with the native one, both ways", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat({ max: 5 }), (bytes, zeros) => {
      const all = Uint8Array.of(...new Uint8Array(zeros), ...bytes);
      const text = encodeBase58(all);
      expect(text).toBe(native.encodeBase58(all));
      expect(decodeBase58(text)).toEqual(all);
    }),
  );
});

it("rejects characters outside the alphabet", () => {
  for (const character of ["0", "O", "I", "l", " ", "é"]) {
    expect(decodeBase58(`2g${character}`)).toBeNull();
  }
});
