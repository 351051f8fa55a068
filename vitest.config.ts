import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Who brings an addon of his own (under sanitizers) runs what needs nothing else.
    globalSetup: process.env["SHREDWAY_PREBUILD"]
      ? []
      : ["processes/build-native", "processes/build-program", "postgres/postgres-template"].map(
          (name) => `test/support/${name}.ts`,
        ),
    // The addon keeps native threads: every test file gets a process of its own.
    pool: "forks",
    // Files wait for sockets, blocks and children for a third of their time: three on two processors.
    maxWorkers: Math.max(3, Math.floor(availableParallelism() / 2)),
    // Bounds for what hangs. What merely is slow, on a busy machine, is no failure.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 120_000,
  },
});
