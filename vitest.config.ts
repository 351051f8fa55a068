import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/build-native.ts"],
    // The addon keeps native threads: every test file gets a process of its own.
    pool: "forks",
    // Most files wait for sockets and blocks, not for processors: two at a time also on small machines.
    maxWorkers: Math.max(2, Math.floor(availableParallelism() / 2)),
    // Bounds for what hangs. What merely is slow, on a busy machine, is no failure.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    teardownTimeout: 120_000,
  },
});
