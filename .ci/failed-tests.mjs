// node failed-tests.mjs REPORT: prints every test of a vitest JSON report that failed or was skipped,
// and ends with status 1 when there is none, which means that vitest itself failed.
import { readFileSync } from "node:fs";

const lineLimit = 12;
const report = JSON.parse(readFileSync(process.argv[2], "utf8"));
let printed = 0;

function print(kind, file, name, message = "") {
  printed++;
  const lines = message.split("\n").slice(0, lineLimit);
  console.log(`${kind} ${file} > ${name}\n${lines.map((line) => `    ${line}`).join("\n")}`);
}

for (const { name, status, message, assertionResults } of report.testResults) {
  const file = name.slice(name.indexOf("/test/") + 1);
  const failed = assertionResults.filter((test) => test.status === "failed");
  for (const test of failed) print("failed", file, test.fullName, test.failureMessages.join("\n"));
  for (const test of assertionResults)
    if (test.status !== "passed" && test.status !== "failed") print("skipped", file, test.fullName);
  if (status === "failed" && failed.length === 0) print("failed", file, "(whole file)", message);
}
process.exitCode = printed > 0 ? 0 : 1;
