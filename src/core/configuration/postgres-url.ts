// PostgreSQL URLs with one or several servers, in the format of libpq.
//
// "postgres://user:password@a:5432,b:5432/database?sslmode=verify-full", or the hosts in the
// options: "postgres:///database?host=/run/a,/run/b&port=5432,5433". Called by the configuration
// and by the store. Errors never contain the user, the password or the options.

import { ShredwayError } from "../errors.ts";

export interface PostgresHost {
  /** A URL with this host only. */
  readonly url: string;
  /** "a:5432", safe to show. */
  readonly name: string;
}

interface UrlFields {
  readonly scheme: string;
  /** "user:password@", or nothing. */
  readonly user: string;
  readonly hosts: readonly string[];
  /** The path and the rest of the URL. */
  readonly rest: string;
}

const hostsMax = 16;

// The text is not quoted, because it may contain a password.
function refusal(expected: string, got: string): ShredwayError {
  return new ShredwayError("config_invalid", `expected ${expected}, got ${got}`);
}

/** Splits the text itself, because the URL standard rejects a port before another host. */
function fieldsOf(text: string): UrlFields {
  const match = /^(postgres(?:ql)?:\/\/)([^/?#]*)(.*)$/is.exec(text);
  if (!match) throw refusal("a URL of postgres", "another text");
  const [, scheme = "", authority = "", rest = ""] = match;
  const userEnd = authority.lastIndexOf("@") + 1;
  const hosts = authority.slice(userEnd).split(",");
  return { scheme, user: authority.slice(0, userEnd), hosts, rest };
}

function urlOf(text: string): URL {
  if (URL.canParse(text)) return new URL(text);
  throw refusal("a URL of postgres", "another text");
}

function checkCount(count: number): void {
  if (count > hostsMax) throw refusal(`at most ${hostsMax} hosts`, `${count}`);
}

function hostsOfAuthority({ scheme, user, hosts, rest }: UrlFields): PostgresHost[] {
  return hosts.map((host, i) => {
    const of = `host ${i + 1} of ${hosts.length}`;
    if (host === "") throw refusal("a host on both sides of a comma", `none as ${of}`);
    const url = `${scheme}${user}${host}${rest}`;
    if (!URL.canParse(url)) throw refusal("hosts with or without a port", `another text as ${of}`);
    return { url, name: new URL(url).host };
  });
}

/** `host` is a list of hosts or socket folders; `port` has one port for all or one for each. */
function hostsOfOptions(url: URL, hosts: readonly string[]): PostgresHost[] {
  const ports = url.searchParams.get("port")?.split(",") ?? [];
  if (ports.length > 1 && ports.length !== hosts.length) {
    throw refusal(`one port for all or ${hosts.length}, one for each host`, `${ports.length}`);
  }
  return hosts.map((host, i) => {
    if (host === "") {
      throw refusal("a host on both sides of a comma", `none as host ${i + 1} of ${hosts.length}`);
    }
    const one = new URL(url);
    one.searchParams.set("host", host);
    const port = ports.length > 1 ? ports[i] : ports[0];
    if (port !== undefined) one.searchParams.set("port", port);
    return { url: one.href, name: port === undefined ? host : `${host}:${port}` };
  });
}

/**
 * Returns one URL per host, in the order of the text. Throws ShredwayError "config_invalid", whose
 * text does not quote the URL.
 */
export function postgresHosts(text: string): PostgresHost[] {
  const fields = fieldsOf(text);
  const { scheme, user, hosts, rest } = fields;
  checkCount(hosts.length);
  if (hosts.length > 1) {
    const all = hostsOfAuthority(fields);
    if (!new URL(all[0]?.url ?? "").searchParams.has("host")) return all;
    throw refusal("hosts before the database or in the option host", "both");
  }
  const url = urlOf(`${scheme}${user}${hosts[0] ?? ""}${rest}`);
  const listed = url.searchParams.get("host")?.split(",") ?? [];
  checkCount(listed.length);
  if (listed.length <= 1) {
    const [only = url.host] = listed;
    return [{ url: text, name: only }];
  }
  if (url.host !== "") throw refusal("hosts before the database or in the option host", "both");
  return hostsOfOptions(url, listed);
}

/**
 * The database URL in a form that is safe to show: without user, password and options. Throws like
 * postgresHosts.
 */
export function postgresName(text: string): string {
  const urls = postgresHosts(text).map(({ url }) => new URL(url));
  const hosts = [...new Set(urls.map(({ host }) => host))];
  return `postgres://${hosts.join(",")}${urls[0]?.pathname ?? ""}`;
}

/** The same, with other secret parts replaced by "masked". */
export function maskPostgresUrl(text: string): string {
  const hosts = postgresName(text).slice("postgres://".length).split("/", 1)[0] ?? "";
  return `postgres://${hosts}/masked`;
}
