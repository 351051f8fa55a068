import { describe, expect, it } from "vitest";
import { createLogger, type LogLevel, maskKeys } from "../../src/core/log.ts";

function logged(
  level: LogLevel,
  write: (logger: ReturnType<typeof createLogger>) => void,
): string[] {
  const lines: string[] = [];
  write(createLogger({ level, stream: { write: (line) => lines.push(line) } }));
  return lines;
}

describe("log", () => {
  it("writes one JSON object per line, from the configured level on", () => {
    const lines = logged("info", (logger) => {
      logger.debug("hidden");
      logger.child({ part: "relay" }).info({ slot: 5 }, "seen");
    });
    expect(lines.length).toBe(1);
    expect(JSON.parse(lines[0] ?? "")).toMatchObject({
      level: "info",
      part: "relay",
      slot: 5,
      msg: "seen",
    });
  });

  it("masks keys in fields and texts", () => {
    const lines = logged("trace", (logger) => {
      logger.info({ apiKey: "SECRET", headers: { authorization: "Bearer SECRET" } }, "fields");
      logger.info({ options: { account: { "api-key": "SECRET" } } }, "deep");
      logger.info({ url: "http://x/?api-key=SECRET&a=b" }, "POST /?api_key=SECRET");
      logger.error(new Error("postgres://user:SECRET@host/db refused"));
      logger.info("key sw_SECRETSECRETSECRETSECRETSECRETSECRETSECRET is new");
    });
    expect(lines.length).toBe(5);
    expect(lines.join("")).not.toContain("SECRET");
    expect(lines[2]).toContain("&a=b");
    for (const line of lines) expect(() => JSON.parse(line)).not.toThrow();
  });

  it("leaves other texts unchanged", () => {
    expect(maskKeys("10.0.0.1:9000 -> [::1]:9000 http://host:80/a@b")).toBe(
      "10.0.0.1:9000 -> [::1]:9000 http://host:80/a@b",
    );
  });
});
