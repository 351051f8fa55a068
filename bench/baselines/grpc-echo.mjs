// The lower bound for a stream over gRPC in Node.js: a server of @grpc/grpc-js that returns each message.
//
// Prints its port. Ends with its standard input.

import { Server, ServerCredentials } from "@grpc/grpc-js";

const same = (bytes) => bytes;
const definition = {
  Echo: {
    path: "/bench.Echo/Echo",
    requestStream: true,
    responseStream: true,
    requestSerialize: same,
    requestDeserialize: same,
    responseSerialize: same,
    responseDeserialize: same,
  },
};

const server = new Server();
server.addService(definition, {
  Echo: (call) => {
    call.on("data", (message) => call.write(message));
    call.on("end", () => call.end());
    call.on("error", () => undefined);
  },
});
server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(JSON.stringify({ kind: "ready", port }));
});
process.stdin.resume();
process.stdin.on("close", () => process.exit(0));
