// grpc.health.v1.Health: whether a server serves, for load balancers and for clients that ask first.
//
// Source: the health checking protocol of gRPC (github.com/grpc/grpc, doc/health-checking.md). A server
// serves as long as it is open, so the state changes once, when it closes. Callers need no key.

import { quote } from "../errors.ts";
import type { GrpcHandler } from "./grpc-server.ts";
import type { GrpcStream } from "./grpc-stream.ts";
import { MessageReader, MessageWriter } from "./protobuf.ts";
import { frameMessage, GrpcError } from "./status.ts";

const states = { serving: 1, notServing: 2, serviceUnknown: 3 } as const;
/** Callers have no key, so they share a limit. */
const watchersMax = 256;
/** A request is the name of a service. */
const requestBytesMax = 1024;

const responseOf = (state: number): Uint8Array => new MessageWriter().uint(1, state).finish();

export class HealthService {
  /** Full names; the empty name is the server. */
  readonly #services: ReadonlySet<string>;
  /** Calls of Watch for services that exist. */
  readonly #watchers = new Set<GrpcStream>();
  #watching = 0;

  /** `services`: "package.Service" of each service of the server. */
  constructor(services: readonly string[]) {
    this.#services = new Set(["", ...services]);
  }

  readonly methods: Readonly<Record<string, GrpcHandler>> = {
    "/grpc.health.v1.Health/Check": ({ message }) => {
      const service = serviceIn(message);
      if (this.#services.has(service)) return responseOf(states.serving);
      throw new GrpcError(
        "NOT_FOUND",
        `service: expected one of this server, got ${quote(service)}`,
      );
    },
  };

  readonly streams = {
    "/grpc.health.v1.Health/Watch": (call: GrpcStream): void => this.#watch(call),
  };

  /** Every watcher gets the end. The server closes afterwards. */
  close(): void {
    for (const call of this.#watchers) send(call, states.notServing);
    for (const call of this.#watchers) call.end("UNAVAILABLE", "the service is shutting down");
  }

  #watch(call: GrpcStream): void {
    if (this.#watching >= watchersMax) {
      throw new GrpcError("RESOURCE_EXHAUSTED", `expected at most ${watchersMax} calls of Watch`);
    }
    this.#watching++;
    call.onClose(() => {
      this.#watching--;
      this.#watchers.delete(call);
    });
    let hasRequest = false;
    call.accept(
      (message) => {
        // A client that does not read would otherwise fill the memory with states.
        if (hasRequest) throw new GrpcError("INVALID_ARGUMENT", "expected one request, got more");
        hasRequest = true;
        const isKnown = this.#services.has(serviceIn(message));
        if (isKnown) this.#watchers.add(call);
        send(call, isKnown ? states.serving : states.serviceUnknown);
      },
      () => undefined,
      { requestBytesMax },
    );
  }
}

function serviceIn(message: Uint8Array): string {
  return new MessageReader(message).string(1);
}

function send(call: GrpcStream, state: number): void {
  call.send(frameMessage(responseOf(state)));
  call.flush();
}
