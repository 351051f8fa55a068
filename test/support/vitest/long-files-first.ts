// The order of test files: those that take longest first, so that none of them runs alone at the end.

import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Parts of paths, the longest first. The native tests are also compiled. */
const longFiles = [
  "test/native.test.ts",
  "test/simulation/simulation.test.ts",
  "test/platform/store/transfer.test.ts",
  "test/integration/",
  "test/examples/",
  "crash.test.ts",
  "browser.test.ts",
  "test/app/",
  "test/platform/store/",
  "test/gateway/tpu/",
  "test/tools/",
];

function rank({ moduleId }: TestSpecification): number {
  const place = longFiles.findIndex((part) => moduleId.includes(part));
  return place < 0 ? longFiles.length : place;
}

export default class LongFilesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await BaseSequencer.prototype.sort.call(this, files);
    return sorted.toSorted((a, b) => rank(a) - rank(b));
  }
}
