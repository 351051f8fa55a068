// The process of the QUIC connections to leaders.
//
// Started by quic-process.ts with a socket as descriptor 3. The QUIC library is native code that
// parses data of leaders, so it runs in a process of its own, which is confined before the first
// packet. endpoint-process.ts does the work.

import { systemClock } from "../../core/clock.ts";
import { confineThisProcess, requireQuiche, serveChannel } from "./confined-main.ts";
import { EndpointProcess } from "./endpoint-process.ts";
import { decodeRequest, encodeAnswer, requestBytesMax } from "./messages.ts";

serveChannel({
  requestBytesMax,
  decode: decodeRequest,
  encode: encodeAnswer,
  create: (answer, end) =>
    new EndpointProcess({
      clock: systemClock,
      quiche: requireQuiche,
      confine: confineThisProcess,
      inNextTurn: setImmediate,
      answer,
      end,
    }),
});
