import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/build-native.ts"],
    // The addon keeps native threads: every test file gets a process of its own.
    pool: "forks",
    testTimeout: 30_000,
  },
});
