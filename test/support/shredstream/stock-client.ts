// The calls of a stock ShredStream proxy, by @grpc/grpc-js and the .proto files of this folder.

import { type Client, credentials, Metadata, type ServiceError } from "@grpc/grpc-js";
import type { KeyPair } from "../../../src/core/key-pair.ts";
import { closing } from "../closing.ts";
import { selfSignedCertificate } from "../quic/self-signed.ts";
import { blockEngineServices } from "./test-block-engine.ts";

const services = blockEngineServices();

type Message = Record<string, unknown>;

/** `address`: "ip:port" of the block engine. Closed with the test. */
export function stockClient(address: string, tls = false) {
  const secure = credentials.createSsl(Buffer.from(selfSignedCertificate));
  const open = (ClientOf: (typeof services)["AuthService"]): Client =>
    closing(new ClientOf(address, tls ? secure : credentials.createInsecure()));
  const [auth, stream] = [open(services.AuthService), open(services.Shredstream)];
  const call = (client: Client, method: string, message: Message, token?: string) => {
    const metadata = new Metadata();
    if (token !== undefined) metadata.set("authorization", `Bearer ${token}`);
    return new Promise<Message>((resolve, reject) => {
      const done = (error: ServiceError | null, response: Message) =>
        error ? reject(new Error(error.message)) : resolve(response);
      Reflect.apply(Reflect.get(client, method), client, [message, metadata, done]);
    });
  };
  const challenge = async (key: KeyPair) => {
    const request = { role: 3, pubkey: key.publicKey };
    return String((await call(auth, "GenerateAuthChallenge", request))["challenge"]);
  };
  const tokens = (text: string, key: KeyPair, signer = key) =>
    call(auth, "GenerateAuthTokens", {
      challenge: text,
      client_pubkey: key.publicKey,
      signed_challenge: signer.sign(Buffer.from(text)),
    });
  const tokenText = (token: unknown) => String(Reflect.get(Object(token), "value"));
  const login = async (key: KeyPair) => {
    const both = await tokens(`${key.address}-${await challenge(key)}`, key);
    return { access: tokenText(both["access_token"]), refresh: tokenText(both["refresh_token"]) };
  };
  const heartbeat = (token: string | undefined, ip: string, port: number, regions = ["ny"]) =>
    call(stream, "SendHeartbeat", { socket: { ip, port }, regions }, token);
  const refresh = (token: string) => call(auth, "RefreshAccessToken", { refresh_token: token });
  return { auth, call, challenge, tokens, login, heartbeat, refresh, tokenText };
}
