// Where the gateway's descriptions are found.
//
// Named by gateway.ts, which answers them, and by the descriptions themselves.

export const openRpcPath = "/openrpc.json";
export const openApiPath = "/openapi.json";
