// XDP support: whether this user and the network cards of this machine can use AF_XDP.
//
// Read by the doctor.

import { native, type XdpSupport } from "./native.ts";

export interface XdpInterface {
  readonly name: string;
  readonly support: XdpSupport;
  readonly receiveQueues: number;
}

export interface XdpReport {
  /** The reason why this process cannot open AF_XDP sockets; null: it can. */
  readonly refusal: string | null;
  /** The reason why it cannot load the program that receives; null: it can. */
  readonly receiveRefusal: string | null;
  readonly interfaces: readonly XdpInterface[];
}

export function readXdpSupport(interfaces: readonly string[]): XdpReport {
  const { refusal, receiveRefusal, ...found } = native().readXdpSupport([...interfaces]);
  return {
    refusal: refusal || null,
    receiveRefusal: receiveRefusal || null,
    interfaces: interfaces.map((name, index) => ({
      name,
      support: found.support[index] ?? "unknown",
      receiveQueues: found.receiveQueues[index] ?? 1,
    })),
  };
}
