// Reads `nft list ruleset`: whether incoming packets are dropped by default, and which UDP ports rules name.
//
// Pure; used by inbound-facts.ts and quic-checks.ts. Rules of iptables-nft, ufw and firewalld appear in the same list. It does not
// decide about a packet: jumps, sets and other conditions remain for the operator.

export interface FirewallFacts {
  /** Chains that see packets to this machine and drop what no rule accepts: "inet filter input". */
  readonly dropping: readonly string[];
  /** Whether a rule with the verdict "accept" names the UDP port, or a set that may contain it. */
  readonly namesPort: boolean;
}

/** Whether "20000", "20000-20010", "{ 53, 20000-20010 }" contains the port; the set "@name" may. */
function contains(ports: string, port: number): boolean {
  if (ports.startsWith("@")) return true;
  return ports
    .replaceAll(/[{}\s]/g, "")
    .split(",")
    .some((part) => {
      const [first = Number.NaN, last = first] = part.split("-").map(Number);
      return port >= first && port <= last;
    });
}

function accepts(rule: string, port: number): boolean {
  const ports = /\b(?:udp|th) dport (\{[^}]*\}|[\d-]+|@\S+)/.exec(rule)?.[1];
  return ports !== undefined && /\baccept\b/.test(rule) && contains(ports, port);
}

const finalDrop = /^(counter packets \d+ bytes \d+ )?(drop|reject\b.*)$/;

/** `family`: of the packets. */
export function firewallFactsIn(
  ruleset: string,
  port: number,
  family: "ipv4" | "ipv6",
): FirewallFacts {
  const families = ["inet", family === "ipv4" ? "ip" : "ip6"];
  const dropping = new Set<string>();
  let namesPort = false;
  let table = "";
  let chain = "";
  let seesInput = false;
  for (const line of ruleset.split("\n").map((each) => each.trim())) {
    const [, kind, name = ""] = /^(table|chain) (.+?) \{$/.exec(line) ?? [];
    if (kind === "table") table = name;
    if (kind === "chain") [chain, seesInput] = [name, false];
    if (!families.includes(table.split(" ")[0] ?? "")) continue;
    if (/\bhook input\b/.test(line)) seesInput = true;
    const isDrop =
      (seesInput && /\bpolicy drop\b/.test(line)) || (seesInput && finalDrop.test(line));
    if (isDrop) dropping.add(`${table} ${chain}`);
    if (accepts(line, port)) namesPort = true;
  }
  return { dropping: [...dropping], namesPort };
}

/** The command that permits the UDP port; null: no rule is known that drops its packets. */
export function nftRemedy(ruleset: string, port: number): string | null {
  for (const family of ["ipv4", "ipv6"] as const) {
    const { dropping, namesPort } = firewallFactsIn(ruleset, port, family);
    const [chain] = dropping;
    if (chain !== undefined && !namesPort) {
      return `nft insert rule ${chain} udp dport ${port} accept`;
    }
  }
  return null;
}
