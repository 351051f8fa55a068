// Page files: the built files of the portal's page, read once at startup.
//
// Used by portal.ts for every path below /portal/. A path is looked up in the manifest, never in
// the file system.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf, quote, ShredwayError } from "../../core/errors.ts";
import type { Logger } from "../../core/log.ts";
import { isObject } from "../../core/values.ts";
import type { HttpHead, HttpResponse } from "../../gateway/http/types.ts";
import { plainAnswer, securityHeaders } from "./responses.ts";

/** Resolves to the same folder from src and from dist. */
export const pageFolder = fileURLToPath(
  new URL("../../../dist/platform/portal/page", import.meta.url),
);

const notBuilt =
  "The portal's page was not built. Run npm run compile in the folder of Shredway, then restart " +
  "the service.";

interface PageFile {
  readonly bytes: Uint8Array;
  readonly gzip: Uint8Array | null;
  readonly type: string;
  readonly etag: string;
  /** The file name changes with the content. */
  readonly isImmutable: boolean;
}

const fileName = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;
const headerText = /^[\x20-\x7e]{1,200}$/;
const pagePath = "/portal/";
const manifestName = "manifest.json";

function manifestError(expected: string, got: unknown): ShredwayError {
  return new ShredwayError(
    "value_invalid",
    `invalid manifest of the portal's page: got ${quote(got)}, expected ${expected}; run npm run compile`,
  );
}

function readEntry(folder: string, entry: unknown): [string, PageFile] {
  const fields = isObject(entry) ? entry : {};
  const read = (name: unknown): Uint8Array => {
    if (typeof name !== "string" || !fileName.test(name))
      throw manifestError("the name of a file", name);
    return readFileSync(join(folder, name));
  };
  const text = (name: string): string => {
    const value = fields[name];
    if (typeof value === "string" && headerText.test(value)) return value;
    throw manifestError(`a text as ${name}`, value);
  };
  const { gzip, isImmutable } = fields;
  const path = text("path");
  const file = {
    bytes: read(fields["file"]),
    gzip: gzip === undefined || gzip === null ? null : read(gzip),
    type: text("type"),
    etag: text("etag"),
    isImmutable: isImmutable === true,
  };
  return [path === "/portal" ? pagePath : path, file];
}

function readManifest(folder: string): Map<string, PageFile> {
  const read: unknown = JSON.parse(readFileSync(join(folder, manifestName), "utf8"));
  const files = isObject(read) ? read["files"] : undefined;
  if (!Array.isArray(files)) throw manifestError("a list of files", files);
  const entries: unknown[] = files;
  const found = new Map(entries.map((entry) => readEntry(folder, entry)));
  if (!found.has(pagePath)) throw manifestError(`a file for ${pagePath}`, [...found.keys()]);
  return found;
}

/** Whether a header such as Accept-Encoding lists `word` with a weight above 0. */
function accepts(list: string, word: string): boolean {
  return list.split(",").some((part) => {
    const [name = "", ...parameters] = part.split(";").map((piece) => piece.trim().toLowerCase());
    return name === word && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
  });
}

export class PageFiles {
  readonly #files: ReadonlyMap<string, PageFile>;

  /** Empty if the page is not built or incomplete; `answer` then explains how to build it. */
  constructor(folder: string, log: Pick<Logger, "info" | "warn">) {
    let files = new Map<string, PageFile>();
    try {
      if (existsSync(join(folder, manifestName))) files = readManifest(folder);
      else log.info("portal: the page is not built; run npm run compile");
    } catch (error) {
      log.warn(`portal: cannot read the page's files: ${messageOf(error)}`);
    }
    this.#files = files;
  }

  get isBuilt(): boolean {
    return this.#files.size > 0;
  }

  has(path: string): boolean {
    return this.#files.has(path);
  }

  /** Answers for a path of the manifest, or explains how to build the page if it is missing. */
  answer({ path, header }: HttpHead): HttpResponse {
    const file = this.#files.get(path);
    if (!file) {
      if (!this.isBuilt) return plainAnswer(503, notBuilt, { "retry-after": "60" });
      return plainAnswer(404, "File not found.");
    }
    const headers = {
      ...securityHeaders,
      etag: file.etag,
      vary: "accept-encoding",
      "cache-control": file.isImmutable ? "public, max-age=31536000, immutable" : "no-cache",
    };
    const known = (header("if-none-match") ?? "").split(",").map((tag) => tag.trim());
    if (known.some((tag) => tag === "*" || tag.replace(/^W\//, "") === file.etag)) {
      return { status: 304, headers };
    }
    const isPacked = file.gzip !== null && accepts(header("accept-encoding") ?? "", "gzip");
    return {
      status: 200,
      headers: {
        ...headers,
        "content-type": file.type,
        ...(isPacked && { "content-encoding": "gzip" }),
      },
      body: isPacked && file.gzip ? file.gzip : file.bytes,
    };
  }
}
