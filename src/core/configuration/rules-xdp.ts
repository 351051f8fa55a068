// Rules of AF_XDP: its interfaces are named if, and only if, shreds leave or arrive by it.
//
// Called by rules.ts.

import { quote } from "../errors.ts";
import { checkDistinct } from "./distinct-values.ts";
import type { RelayConfig } from "./schema.ts";

type Report = (path: readonly (string | number)[], message: string) => void;

export function checkXdp({ transmit, receive, xdpInterfaces }: RelayConfig, report: Report): void {
  const user = transmit === "xdp" ? "transmit: xdp" : "receive.mode: xdp";
  const isUsed = transmit === "xdp" || receive.mode === "xdp";
  if (isUsed && xdpInterfaces === undefined) {
    report(["xdpInterfaces"], `missing key; ${user} expects the names of network interfaces`);
  } else if (!isUsed && xdpInterfaces !== undefined) {
    report(
      ["xdpInterfaces"],
      `unused with transmit: ${transmit} and receive.mode: ${receive.mode}; expected xdp for one of ` +
        "them, or no key",
    );
  }
  checkDistinct(xdpInterfaces ?? [], String, (index) =>
    report(
      ["xdpInterfaces", index],
      `duplicate interface ${quote(xdpInterfaces?.[index])}; expected different interfaces`,
    ),
  );
}
