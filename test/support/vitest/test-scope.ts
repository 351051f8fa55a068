// The scope of a test run: `npm test`, or everything (`npm run test:all`).

/** True for `npm run test:all`: also servers, network namespaces, crashes and a browser. */
export const isFullRun = process.env["SHREDWAY_TESTS"] === "all";

/** The first of `seeds` in `npm test`, all of them in the full run: for tests of many random inputs. */
export function seedsOfRun<Seed>(seeds: readonly [Seed, ...Seed[]]): readonly Seed[] {
  return isFullRun ? seeds : seeds.slice(0, 1);
}

/** Files that only the full run includes: they need other programs or root, or kill processes. */
export const filesOfFullRun: readonly string[] = [
  "test/**/*-crash.test.ts",
  "test/**/crash.test.ts",
  "test/**/kill.test.ts",
  "test/core/node-version-npm.test.ts",
  "test/gateway/http/stalled.test.ts",
  "test/**/*-postgres.test.ts",
  "test/**/postgres/*.test.ts",
  "test/**/postgres.test.ts",
  "test/**/{disk-full,full-disk}.test.ts",
  "test/**/interop/*.test.ts",
  "test/platform/portal/page/{browser,load}.test.ts",
  "test/platform/metrics/{alerts,prometheus}.test.ts",
  "test/examples/{compose,first-hour,nginx,examples,production}.test.ts",
  "test/integration/{backup-restore,database-move,forged-icmp,regions,transmit}.test.ts",
];
