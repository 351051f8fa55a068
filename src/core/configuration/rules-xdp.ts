// Rules of AF_XDP: its interfaces are named if, and only if, it is the transmit mode.
//
// Called by rules.ts.

import { quote } from "../errors.ts";
import { checkDistinct } from "./distinct-values.ts";
import type { RelayConfig } from "./schema.ts";

type Report = (path: readonly (string | number)[], message: string) => void;

export function checkXdp({ transmit, xdpInterfaces }: RelayConfig, report: Report): void {
  if (transmit === "xdp" && xdpInterfaces === undefined) {
    report(["xdpInterfaces"], "missing key; transmit: xdp expects the names of network interfaces");
  } else if (transmit !== "xdp" && xdpInterfaces !== undefined) {
    report(
      ["xdpInterfaces"],
      `unused with transmit: ${transmit}; expected transmit: xdp, or no key`,
    );
  }
  checkDistinct(xdpInterfaces ?? [], String, (index) =>
    report(
      ["xdpInterfaces", index],
      `duplicate interface ${quote(xdpInterfaces?.[index])}; expected different interfaces`,
    ),
  );
}
