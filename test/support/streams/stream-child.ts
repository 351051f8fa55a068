// A process with one stream of SubscribeDeshred, for tests that stop or kill it.
//
// tsx test/support/streams/stream-child.ts ADDRESS. Prints "open" when the service has answered a ping.

import { systemClock } from "../../../src/core/clock.ts";
import { GrpcStreamCall } from "../../../src/core/grpc/grpc-stream-call.ts";
import { MessageWriter } from "../../../src/core/grpc/protobuf.ts";
import { encodeRequest, streamPaths } from "../../../src/tools/stream/stream-messages.ts";

const [address = ""] = process.argv.slice(2);
const call = new GrpcStreamCall({
  url: `http://${address}`,
  path: streamPaths.deshred,
  metadata: { "x-token": "alice" },
  messageBytesMax: 4 << 20,
  clock: systemClock,
  onOpen: () => undefined,
  onMessage: () => console.log("open"),
  onEnd: ({ status }) => console.log(status),
});
call.send(encodeRequest("deshred", { vote: undefined, include: [], exclude: [], required: [] }));
const ping = new MessageWriter().uint(1, 1).finish();
call.send(new MessageWriter().message(2, ping).finish());
