import { availableParallelism } from "node:os";
import { configDefaults, defineConfig, type TestProjectInlineConfiguration } from "vitest/config";
import { compiledChildren } from "./test/support/vitest/compiled-children.ts";
import LongFilesFirst from "./test/support/vitest/long-files-first.ts";
import ScopeReporter from "./test/support/vitest/scope-reporter.ts";
import { filesOfSharedProcesses } from "./test/support/vitest/shared-processes.ts";
import { filesOfFullRun, isFullRun } from "./test/support/vitest/test-scope.ts";

const excluded = [...configDefaults.exclude, ...(isFullRun ? [] : filesOfFullRun)];
const shared = filesOfSharedProcesses();

interface Files {
  readonly name: string;
  readonly include: string[];
  readonly exclude: string[];
  /** Each file has a process of its own. */
  readonly isolate: boolean;
}

function project(files: Files): TestProjectInlineConfiguration {
  return {
    plugins: [compiledChildren],
    test: {
      ...files,
      pool: "forks",
      // V8 optimizes later, because most processes end before it pays. The second option exists in Node 20 only.
      execArgv: [
        "--wasm-tiering-budget=1000000000",
        ...(process.version.startsWith("v20.") ? ["--interrupt-budget=1000000"] : []),
      ],
      // Limits for a test that hangs. A test that is only slow, on a busy machine, passes.
      expect: { poll: { timeout: 60_000 } },
      testTimeout: 120_000,
      hookTimeout: 120_000,
    },
  };
}

export default defineConfig({
  test: {
    projects: [
      project({
        name: "isolated",
        include: ["test/**/*.test.ts"],
        exclude: [...excluded, ...shared],
        isolate: true,
      }),
      // These load each module once in each process.
      project({ name: "shared", include: shared, exclude: excluded, isolate: false }),
    ],
    sequence: { sequencer: LongFilesFirst },
    reporters: ["default", new ScopeReporter()],
    // SHREDWAY_PREBUILD names a prebuilt addon (sanitizers, other versions of Node). Nothing is built
    // then, so such a run includes only tests that need neither the program nor PostgreSQL.
    globalSetup: process.env["SHREDWAY_PREBUILD"]
      ? []
      : [
          "processes/build-native",
          "processes/build-program",
          "postgres/postgres-template",
          "postgres/stand-in/template",
        ].map((name) => `test/support/${name}.ts`),
    // Test files wait for sockets, blocks and children, so three run on two CPUs. Five took as long on a slow
    // machine, and limits of clients and of the service expired.
    maxWorkers: Math.max(3, availableParallelism()),
    teardownTimeout: 120_000,
  },
});
