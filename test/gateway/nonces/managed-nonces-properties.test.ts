// Property: under any faults of processes, nodes and databases, no two keys share an account and no
// key has two.

import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Disk, keysOf, NonceHarness, ownerOf, type Process, Steps } from "./nonce-harness.ts";

type NonceAction =
  | { readonly kind: "call"; readonly process: number; readonly key: number }
  | { readonly kind: "pass"; readonly steps: number }
  | { readonly kind: "kill"; readonly process: number }
  | { readonly kind: "lose"; readonly process: number }
  | { readonly kind: "fail"; readonly process: number; readonly name: string }
  | { readonly kind: "disk"; readonly process: number };

const eitherProcess = fc.nat(1);
const anyAction: fc.Arbitrary<NonceAction> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("call"), process: eitherProcess, key: fc.nat(3) }),
  },
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant("pass"), steps: fc.integer({ min: 1, max: 12 }) }),
  },
  fc.record({ kind: fc.constant("kill"), process: eitherProcess }),
  fc.record({ kind: fc.constant("lose"), process: eitherProcess }),
  fc.record({
    kind: fc.constant("fail"),
    process: eitherProcess,
    name: fc.constantFrom("accounts", "sendTransaction", "signatureStatuses", "latestBlockhash"),
  }),
  fc.record({ kind: fc.constant("disk"), process: eitherProcess }),
);

/** Two processes on one disk, and the results that they returned. */
class Simulation {
  readonly results = new Map<number, Set<string>>();
  readonly disk = new Disk();
  readonly #harness: NonceHarness;
  readonly #name: string;
  readonly #processes: Process[] = [];

  constructor(harness: NonceHarness, name: string) {
    this.#harness = harness;
    this.#name = name;
  }

  async start(at: number): Promise<void> {
    this.#processes[at] = await this.#harness.start(this.disk, keysOf(this.#name), new Steps());
  }

  async do(deed: NonceAction): Promise<void> {
    if (deed.kind === "pass") return this.#harness.pass(deed.steps * 100);
    const process = this.#processes[deed.process];
    if (!process) throw new Error("expected a process");
    const { node, store, steps } = process;
    if (deed.kind === "call") this.#call(process, deed.key);
    else if (deed.kind === "lose") node.losesAll = !node.losesAll;
    else if (deed.kind === "disk") store.isDown = !store.isDown;
    else if (deed.kind === "fail") toggle(node.down, deed.name);
    else {
      steps.isDead = true;
      await this.start(deed.process);
    }
  }

  #call({ service }: Process, key: number): void {
    const onAccount = ({ nonceAccount }: { nonceAccount: string }): void => {
      this.results.set(key, (this.results.get(key) ?? new Set()).add(nonceAccount));
    };
    service.managed(ownerOf(`p${key}`)).then(onAccount, () => undefined);
  }
}

function toggle(set: Set<string>, name: string): void {
  if (!set.delete(name)) set.add(name);
}

describe("managed nonces under random faults", () => {
  it("permanently belong to one key each", async () => {
    const harness = await NonceHarness.open();
    let runs = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(anyAction, { minLength: 4, maxLength: 40 }), async (actions) => {
        const name = `property ${runs++}`;
        const simulation = new Simulation(harness, name);
        await simulation.start(0);
        await simulation.start(1);
        for (const each of actions) await simulation.do(each);
        // After all faults end, every key asks once more.
        await simulation.do({ kind: "kill", process: 0 });
        await simulation.do({ kind: "kill", process: 1 });
        const { service } = await harness.start(simulation.disk, keysOf(name));
        const finals: string[] = [];
        for (const key of [0, 1, 2, 3]) {
          const owner = ownerOf(`p${key}`);
          const info = await harness.managed(service, owner);
          finals.push(info.nonceAccount);
          expect(service.ownerOf(info.nonceAccount)).toEqual(owner);
          expect(info.nonce).toBe(harness.nonce(info.nonceAccount)?.value);
          expect([...(simulation.results.get(key) ?? [info.nonceAccount])]).toEqual([
            info.nonceAccount,
          ]);
        }
        expect(new Set(finals).size).toBe(4);
        // Indexes have no gap, so every account has an owner.
        const addresses = Array.from({ length: 8 }, (_, i) => keysOf(name).account(i).address);
        expect(addresses.map((each) => harness.nonce(each) !== null)).toEqual(
          addresses.map((_, i) => i < 4),
        );
        for (const each of finals) expect(harness.lamports(each)).toBe(harness.rent);
      }),
      { numRuns: 25 },
    );
  });
});
