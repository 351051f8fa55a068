import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatConfig, parseConfig } from "../../../src/core/configuration/configuration.ts";
import {
  maskPostgresUrl,
  postgresHosts,
  postgresName,
} from "../../../src/core/configuration/postgres-url.ts";
import { parsePostgresUrl } from "../../../src/core/configuration/schema-keys.ts";

const urls = (text: string) => postgresHosts(text).map(({ url }) => url);
const names = (text: string) => postgresHosts(text).map(({ name }) => name);

describe("a URL of PostgreSQL", () => {
  it("is unchanged with one server", () => {
    for (const text of [
      "postgres://shredway:p%40ss@db.example.com:5433/shredway?sslmode=verify-full",
      "postgresql://[::1]:5432/a",
      "postgres:///shredway?host=/run/postgresql&user=shredway",
      "postgres://%2Frun%2Fpostgresql/shredway",
    ]) {
      expect(urls(text)).toEqual([text]);
    }
  });

  it("gives one URL per server with the same user, database and options", () => {
    const text =
      "postgres://shredway:a,b@c@one:5432,[::1],two.example.com:6000/db?sslmode=verify-full";
    expect(urls(text)).toEqual([
      "postgres://shredway:a,b@c@one:5432/db?sslmode=verify-full",
      "postgres://shredway:a,b@c@[::1]/db?sslmode=verify-full",
      "postgres://shredway:a,b@c@two.example.com:6000/db?sslmode=verify-full",
    ]);
    expect(names(text)).toEqual(["one:5432", "[::1]", "two.example.com:6000"]);
  });

  it("may have its hosts in the options, with one port for all or one for each", () => {
    const at = (options: string) =>
      urls(`postgres:///db?host=/run/a,/run/b${options}`).map((url) => {
        const { searchParams } = new URL(url);
        return [searchParams.get("host"), searchParams.get("port"), searchParams.get("user")];
      });
    expect(at("&user=u")).toEqual([
      ["/run/a", null, "u"],
      ["/run/b", null, "u"],
    ]);
    expect(at("&port=1").map(([, port]) => port)).toEqual(["1", "1"]);
    expect(at("&port=1,2").map(([, port]) => port)).toEqual(["1", "2"]);
    expect(names("postgres:///db?host=/run/a,/run/b&port=1,2")).toEqual(["/run/a:1", "/run/b:2"]);
  });

  it.each([
    ["", "expected a URL of postgres, got another text"],
    ["mysql://SECRET@a/b", "expected a URL of postgres, got another text"],
    ["postgres://u:SECRET@a:b/db", "expected a URL of postgres, got another text"],
    [
      "postgres://u:SECRET@a,,b/db",
      "expected a host on both sides of a comma, got none as host 2 of 3",
    ],
    [
      "postgres://u:SECRET@a,b:x/db",
      "expected hosts with or without a port, got another text as host 2 of 2",
    ],
    [
      "postgres://u:SECRET@a:70000,b/db",
      "expected hosts with or without a port, got another text as host 1 of 2",
    ],
    [
      "postgres://u:SECRET@a,b/db?host=c",
      "expected hosts before the database or in the option host, got both",
    ],
    [
      "postgres://u:SECRET@a/db?host=c,d",
      "expected hosts before the database or in the option host, got both",
    ],
    [
      "postgres:///db?host=c,d&port=1,2,3&password=SECRET",
      "expected one port for all or 2, one for each host, got 3",
    ],
    [
      "postgres:///db?host=c,&password=SECRET",
      "expected a host on both sides of a comma, got none as host 2 of 2",
    ],
    [`postgres://u:SECRET@${"a,".repeat(16)}a/db`, "expected at most 16 hosts, got 17"],
  ])("that is invalid or unusable is rejected without being quoted: %s", (text, message) => {
    expect(() => parsePostgresUrl(text)).toThrow(message);
    expect(() => parsePostgresUrl(text)).not.toThrow("SECRET");
  });

  it("is shown without user, password and options", () => {
    const letters = "aZ09,:;@!$&'()*+=~._-%2F".split("");
    const part = fc.string({ unit: fc.constantFrom(...letters), maxLength: 12 });
    const host = fc.constantFrom("a", "b:5432", "[::1]:1", "db.example.com");
    const hosts = fc.array(host, { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(part, part, hosts, (user, password, list) => {
        const secret = `u${user}:SECRET${password}@`;
        const text = `postgres://${secret}${list.join()}/db?password=SECRET&sslmode=verify-full`;
        for (const shown of [postgresName(text), maskPostgresUrl(text), ...names(text)]) {
          expect(shown).not.toMatch(/SECRET|sslmode|@/);
        }
        expect(names(text)).toEqual(list);
        for (const url of urls(text)) expect(new URL(url).pathname).toBe("/db");
      }),
    );
  });

  it("is printed masked with several servers, and can be read again", () => {
    const data = "data: { postgres: 'postgres://u:SECRET@a:5432,b/db?sslkey=SECRET' }";
    const text = `relay: { authentication: "off", shredVersion: 50093 }\n${data}\n`;
    const printed = formatConfig(parseConfig(text, "a.yaml"));
    expect(printed).toContain("postgres://a:5432,b/masked");
    expect(printed).not.toContain("SECRET");
    expect(formatConfig(parseConfig(printed, "b.yaml"))).toBe(printed);
  });
});
