// Recent landed tips: the current snapshot, and a new one every quarter of an hour.
//
// node tips.mjs GATEWAY [COUNT]
//
// Ends after COUNT snapshots (default: never). Needs no key.

import { ShredwayClient } from "shredway/client";
import { WebSocket } from "ws";

const [gateway = "", count = "Infinity"] = process.argv.slice(2);
const client = new ShredwayClient({ url: gateway, WebSocket });

let seen = 0;
for await (const { time, p25, p50, p75, p95, p99, count: tips, stale } of client.tipStream()) {
  if (tips === 0) {
    console.log(`${time} no snapshot yet: no tip has landed through this service`);
    if (++seen >= Number(count)) break;
    continue;
  }
  const age = stale
    ? " (stale: no tip landed in the quarter of an hour before the last refresh)"
    : "";
  console.log(`${time} p25 ${p25} p50 ${p50} p75 ${p75} p95 ${p95} p99 ${p99} of ${tips}${age}`);
  if (++seen >= Number(count)) break;
}
