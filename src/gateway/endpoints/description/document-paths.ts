// Paths of the gateway's OpenRPC and OpenAPI documents.
//
// gateway.ts serves them; the documents refer to each other by them.

export const openRpcPath = "/openrpc.json";
export const openApiPath = "/openapi.json";
