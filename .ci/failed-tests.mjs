// Reads vitest's JSON reports.
//
//   node failed-tests.mjs REPORT                prints the files with skipped tests and every test that
//                                               failed; ends with status 1 if there is none: vitest
//                                               itself failed
//   node failed-tests.mjs --files REPORT        prints the files with a failed test
//   node failed-tests.mjs --merge REPORT AGAIN  replaces these files in REPORT by the report of a second
//                                               run, and prints the tests that failed in the first only
import { readFileSync, writeFileSync } from "node:fs";

const lineLimit = 12;

const read = (path) => JSON.parse(readFileSync(path, "utf8"));

const relative = (name) => name.slice(name.indexOf("/test/") + 1);

function printFailure(file, name, message) {
  const lines = message.split("\n").slice(0, lineLimit);
  console.log(
    `failed ${relative(file)} > ${name}\n${lines.map((line) => `    ${line}`).join("\n")}`,
  );
}

/** Prints what was skipped, a line for each file, then what failed; returns how many lines of both there are. */
function printFailures({ testResults }) {
  let printed = 0;
  for (const { name, assertionResults } of testResults) {
    const skipped = assertionResults.filter(
      (test) => test.status !== "passed" && test.status !== "failed",
    );
    if (skipped.length === 0) continue;
    console.log(`skipped ${relative(name)}: ${skipped.length}, first: ${skipped[0].fullName}`);
    printed++;
  }
  for (const { name, status, message, assertionResults } of testResults) {
    if (status !== "failed") continue;
    const failed = assertionResults.filter((test) => test.status === "failed");
    for (const test of failed) printFailure(name, test.fullName, test.failureMessages.join("\n"));
    if (failed.length === 0) printFailure(name, "(whole file)", message);
    printed += Math.max(1, failed.length);
  }
  return printed;
}

function failedFiles({ testResults }) {
  return testResults.filter(({ status }) => status === "failed").map(({ name }) => name);
}

function merge(path, againPath) {
  const report = read(path);
  const again = read(againPath);
  for (const { name, assertionResults } of report.testResults)
    for (const { status, fullName } of assertionResults)
      if (status === "failed")
        console.log(`unstable: ${relative(name)} > ${fullName}: passed when it ran alone`);
  const isReplaced = new Set(again.testResults.map(({ name }) => name));
  report.testResults = [
    ...report.testResults.filter(({ name }) => !isReplaced.has(name)),
    ...again.testResults,
  ];
  writeFileSync(path, JSON.stringify(report));
}

const [first, ...rest] = process.argv.slice(2);
if (first === "--files") for (const file of failedFiles(read(rest[0]))) console.log(file);
else if (first === "--merge") merge(rest[0], rest[1]);
else process.exitCode = printFailures(read(first)) > 0 ? 0 : 1;
