// Serves the gateway's OpenRPC and OpenAPI documents.
//
// gateway.ts uses it for /openrpc.json, /openapi.json and rpc.discover. A document is built once
// per configuration, not per request. It needs no key: it contains only public documentation and
// the names and URLs of the regions.

import { createHash } from "node:crypto";
import { writeJson } from "../../../core/json-rpc/json-text.ts";
import type { HttpHead, HttpResponse } from "../../http/types.ts";
import type { GatewaySettings } from "../../methods/dependencies.ts";
import { documentHeaders } from "../answers.ts";
import { openApiDocument } from "./openapi.ts";
import { type DescriptionFacts, openRpcDocument } from "./openrpc.ts";

interface Description {
  readonly text: string;
  /** The text for GET. It needs no key, and a string would be copied for each response. */
  readonly bytes: Uint8Array;
  /** Entity tag, including its quotes. */
  readonly tag: string;
}

const cacheControl = "public, max-age=300";

function write(document: object): Description {
  const text = writeJson(document);
  const bytes = Buffer.from(text);
  const digest = createHash("sha256").update(bytes).digest("base64url");
  return { text, bytes, tag: `"${digest.slice(0, 22)}"` };
}

/** Whether If-None-Match lists `tag`; weak tags match too. */
function isListed(tag: string, listed: string | undefined): boolean {
  if (listed === undefined) return false;
  const tags = listed.split(",").map((each) => each.trim().replace(/^W\//, ""));
  return tags.includes(tag) || tags.includes("*");
}

/** The settings that the documents show. */
type ShownSettings = Pick<GatewaySettings, "regions" | "readMethods">;

/** Caches the document of `build` until the regions or the read methods change. */
class CachedDescription {
  readonly #build: (facts: DescriptionFacts) => object;
  #shown: ShownSettings | undefined;
  #description: Description | undefined;

  constructor(build: (facts: DescriptionFacts) => object) {
    this.#build = build;
  }

  get(version: string, { regions, readMethods }: ShownSettings): Description {
    const isSame = this.#shown?.regions === regions && this.#shown.readMethods === readMethods;
    if (this.#description && isSame) return this.#description;
    this.#shown = { regions, readMethods };
    this.#description = write(this.#build({ version, regions, readMethods }));
    return this.#description;
  }
}

export class Descriptions {
  readonly #version: string;
  readonly #settings: ShownSettings;
  readonly #openRpc = new CachedDescription(openRpcDocument);
  readonly #openApi = new CachedDescription(openApiDocument);

  /** A reload may change `settings`. */
  constructor(version: string, settings: ShownSettings) {
    this.#version = version;
    this.#settings = settings;
  }

  openRpc(): Description {
    return this.#openRpc.get(this.#version, this.#settings);
  }

  openApi(): Description {
    return this.#openApi.get(this.#version, this.#settings);
  }

  /** Responds to GET and HEAD of either document. */
  answer(head: HttpHead, { bytes, tag }: Description): HttpResponse {
    const headers = {
      ...documentHeaders(head),
      "cache-control": cacheControl,
      etag: tag,
    };
    if (!isListed(tag, head.header("if-none-match"))) return { status: 200, headers, body: bytes };
    const { "content-type": _, ...unchanged } = headers; // a 304 has no content
    return { status: 304, headers: unchanged };
  }
}
