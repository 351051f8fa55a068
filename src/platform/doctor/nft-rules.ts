// Reads the rules of nftables: whether a packet filter of this machine drops packets to a UDP port. Pure.
//
// It understands rules by port. Rules with other conditions, and filters of other programs, are not judged, so
// that a null does not mean that the port is reachable.

interface InputChain {
  readonly table: string;
  readonly chain: string;
}

/** Chains with the hook "input" whose policy is "drop". */
function droppingChains(ruleset: string): InputChain[] {
  const found: InputChain[] = [];
  let [table, chain] = ["", ""];
  for (const line of ruleset.split("\n")) {
    table = /^table (\S+ \S+) \{/.exec(line)?.[1] ?? table;
    chain = /^\s+chain (\S+) \{/.exec(line)?.[1] ?? chain;
    if (/hook input\b.*policy drop/.test(line)) found.push({ table, chain });
  }
  return found;
}

/** `expression`: "7000", "7000-7010" or "{ 22, 7000-7010 }". */
function hasPort(expression: string, port: number): boolean {
  return expression.split(/[{},\s]+/).some((part) => {
    const [first, last = first] = part.split("-").map(Number);
    return (
      part !== "" && first !== undefined && last !== undefined && first <= port && port <= last
    );
  });
}

function accepts(ruleset: string, port: number): boolean {
  return ruleset.split("\n").some((line) => {
    if (!/\baccept\b/.test(line)) return false;
    const [, expression] = /\b(?:udp|th) dport (\{[^}]*\}|\S+)/.exec(line) ?? [];
    // A named set may contain the port.
    return expression !== undefined && (expression.startsWith("@") || hasPort(expression, port));
  });
}

/** The command that permits the port; null: no rule is known that drops its packets. */
export function nftRemedy(ruleset: string, port: number): string | null {
  const [first] = droppingChains(ruleset);
  if (!first || accepts(ruleset, port)) return null;
  return `nft insert rule ${first.table} ${first.chain} udp dport ${port} accept`;
}
