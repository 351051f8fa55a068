// Packets that a confined process could not send or receive, for the log of the gateway.

import type { SupervisionAnswer } from "./types.ts";

/** Answers with failed packets, once for each change of their number. */
export class PacketFailures {
  readonly #answer: (answer: SupervisionAnswer) => void;
  #reported = 0;

  constructor(answer: (answer: SupervisionAnswer) => void) {
    this.#answer = answer;
  }

  report({ packets, last }: { readonly packets: number; readonly last: string }): void {
    if (packets === this.#reported) return;
    this.#reported = packets;
    this.#answer({
      kind: "trouble",
      message: `${packets} packets could not be sent or received: ${last}`,
    });
  }
}
