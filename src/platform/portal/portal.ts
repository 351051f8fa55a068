// Portal: routes every path below /portal/ and manages sign-in.
//
// Created by compose-portal.ts; the gateway serves it. Sign-in takes an API key, and invalid keys
// count as in the gateway. Later requests use a cookie that scripts cannot read. Every change
// must come from the portal's own page (origin.ts). The portal never shows, logs or stores a
// key's text.

import { isUtf8 } from "node:buffer";
import { quote } from "../../core/errors.ts";
import { isJsonObject, readJson } from "../../core/json-rpc/json-text.ts";
import type { ApiKey } from "../../gateway/accounts/types.ts";
import type {
  HttpHead,
  HttpRequest,
  HttpResponse,
  WebSocketRoute,
} from "../../gateway/http/types.ts";
import type { Pages, Path } from "../../gateway/methods/dependencies.ts";
import { type Holder, timeText } from "./api-key-actions.ts";
import { Calls, refusalOf } from "./calls.ts";
import type { PortalDependencies } from "./dependencies.ts";
import { LiveFeed } from "./live-feed.ts";
import { MonthExport } from "./month-export.ts";
import { isOwnOrigin, isSecure } from "./origin.ts";
import { PageFiles } from "./page-files.ts";
import { emptyAnswer, jsonAnswer, plainAnswer, refusal } from "./responses.ts";
import { type Session, Sessions } from "./sessions.ts";
import type { SessionView } from "./types.ts";

const cookieName = "shredway_session";
const pagePath = "/portal/";
const sessionPath = "/portal/api/session";
const callPath = "/portal/api/call";
const exportPath = "/portal/api/export";
const livePath = "/portal/live";
/** Room for one call; the gateway limits longer bodies to 16 kB. */
const bodyBytesMax = 8192;
const cookiesMax = 64;

type Handler = Path["handle"];
/** Accepts every method, so that refusals of a method carry the portal's headers. */
const everyMethod = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] as const;

/** Value of the session cookie; undefined if the cookie occurs several times. */
function tokenOf(head: HttpHead): string | undefined {
  const pairs = (head.header("cookie") ?? "").split(/[;,]/, cookiesMax).map((pair) => pair.trim());
  const own = pairs.filter((pair) => pair.startsWith(`${cookieName}=`));
  return own.length === 1 ? own[0]?.slice(cookieName.length + 1) : undefined;
}

function textOf(body: Uint8Array): string {
  return isUtf8(body) ? Buffer.from(body).toString() : "";
}

const notSignedIn = refusal("unauthorized", "not signed in; sign in with an API key");

export class Portal implements Pages {
  readonly home = pagePath;
  readonly listed = [pagePath];
  readonly webSockets: Readonly<Record<string, WebSocketRoute>>;
  readonly #dependencies: PortalDependencies;
  readonly #sessions: Sessions;
  readonly #files: PageFiles;
  readonly #calls: Calls;
  readonly #export: MonthExport;
  readonly #live: LiveFeed;
  readonly #paths: ReadonlyMap<string, Path>;

  constructor(dependencies: PortalDependencies) {
    this.#dependencies = dependencies;
    const { clock, keys, sessionHours, log, pageFolder } = dependencies;
    this.#sessions = new Sessions({ clock, keys, hours: sessionHours });
    this.#files = new PageFiles(pageFolder, log);
    this.#calls = new Calls(dependencies);
    this.#export = new MonthExport(dependencies);
    this.#live = new LiveFeed(dependencies, (head) => this.#admitted(head));
    this.webSockets = { [livePath]: this.#live };
    this.#paths = new Map([
      ["/portal", pathOf({ GET: redirect, HEAD: redirect })],
      [
        sessionPath,
        pathOf({
          GET: (request) => this.#answerSession(request),
          POST: (request) => this.#signIn(request),
          DELETE: (request) => this.#signOut(request),
        }),
      ],
      [callPath, pathOf({ POST: (request) => this.#answerCall(request) })],
      [exportPath, pathOf({ GET: (request) => this.#answerExport(request) })],
      [livePath, pathOf({ GET: () => upgradeAnswer })],
    ]);
  }

  find(path: string): Path | undefined {
    const own = this.#paths.get(path);
    if (own) return own;
    if (!path.startsWith(pagePath)) return undefined;
    const answer: Handler = (request) =>
      // Until the page is built, every path explains how to build it.
      this.#files.has(path) || !this.#files.isBuilt
        ? this.#files.answer(request)
        : plainAnswer(404, "Not found. The portal is at /portal/.");
    return pathOf({ GET: answer, HEAD: answer });
  }

  get sessions(): number {
    return this.#sessions.count;
  }

  get feeds(): number {
    return this.#live.count;
  }

  close(): void {
    this.#live.close();
  }

  /** Returns the cookie's valid session with its key, or null. */
  #holderOf(head: HttpHead): Holder | null {
    const address = this.#dependencies.gateway().addressOf(head);
    const session = this.#sessions.find(tokenOf(head), address);
    const key = session && this.#sessions.keyOf(session, address);
    return session && key ? { session, key } : null;
  }

  /** Admits a live feed and returns the check for its later updates, or a refusal. */
  #admitted(head: HttpHead): HttpResponse | (() => ApiKey | null) {
    if (!isOwnOrigin(head, this.#dependencies.gateway())) return foreignOrigin(head);
    const holder = this.#holderOf(head);
    if (!holder) return notSignedIn;
    const address = this.#dependencies.gateway().addressOf(head);
    return () => this.#sessions.keyOf(holder.session, address);
  }

  #view({ session, key }: { readonly session: Session; readonly key: ApiKey }): SessionView {
    const { expiresNs } = key;
    const endsNs = expiresNs !== null && expiresNs < session.endsNs ? expiresNs : session.endsNs;
    return {
      account: key.accountName,
      key: {
        id: key.id,
        hint: key.hint,
        label: key.label,
        scopes: key.scopes,
        ...this.#dependencies.gateway().limitOf(key),
      },
      isOperator: key.scopes.includes("operate"),
      endsAt: timeText(endsNs),
      feedRefusal: this.#live.refusalFor(key),
    };
  }

  #answerSession(request: HttpRequest): HttpResponse {
    const holder = this.#holderOf(request);
    return holder ? jsonAnswer(this.#view(holder)) : notSignedIn;
  }

  #signIn(request: HttpRequest): HttpResponse {
    const gateway = this.#dependencies.gateway();
    const refused = this.#refusedBody(request);
    if (refused) return refused;
    let text: unknown;
    try {
      const given = readJson(textOf(request.body), 2);
      text = isJsonObject(given) ? given["key"] : undefined;
    } catch (thrown) {
      return refusalOf(thrown, (fault) => gateway.report(fault));
    }
    if (typeof text !== "string" || text.trim() === "") {
      return refusal("value_invalid", 'no API key; expected the body {"key": "sw_…"}');
    }
    const found = gateway.check(request, text.trim(), (reason, message, { headers } = {}) =>
      reason === "unauthorized"
        ? refusal(
            reason,
            "invalid API key: unknown, expired, revoked, or not allowed from this address",
          )
        : refusal(reason, message, { headers: { ...headers } }),
    );
    if (!found.key) return found.refusal;
    const { key } = found;
    // A new sign-in ends the browser's previous session.
    this.#sessions.end(tokenOf(request));
    const { token, session } = this.#sessions.open(key);
    this.#dependencies.log.info({ account: key.accountName, key: key.id }, "portal: signed in");
    return jsonAnswer(this.#view({ session, key }), {
      "set-cookie": this.#cookie(request, token, this.#dependencies.sessionHours * 3600),
    });
  }

  #signOut(request: HttpRequest): HttpResponse {
    if (!isOwnOrigin(request, this.#dependencies.gateway())) return foreignOrigin(request);
    const token = tokenOf(request);
    const holder = this.#holderOf(request);
    this.#sessions.end(token);
    if (holder) {
      const { accountName, id } = holder.key;
      this.#dependencies.log.info({ account: accountName, key: id }, "portal: signed out");
    }
    return emptyAnswer({ "set-cookie": this.#cookie(request, "", 0) });
  }

  #answerCall(request: HttpRequest): HttpResponse | Promise<HttpResponse> {
    const refused = this.#refusedBody(request);
    if (refused) return refused;
    const holder = this.#holderOf(request);
    return holder ? this.#calls.answer(holder, textOf(request.body)) : notSignedIn;
  }

  async #answerExport(request: HttpRequest): Promise<HttpResponse> {
    const holder = this.#holderOf(request);
    if (!holder) return notSignedIn;
    const gateway = this.#dependencies.gateway();
    try {
      gateway.admit(holder.key, "getRegistrations");
      return await this.#export.answer(holder.key, request.query);
    } catch (thrown) {
      return refusalOf(thrown, (fault) => gateway.report(fault));
    }
  }

  /** Refuses a body that is foreign, not JSON or too long, before it is parsed. */
  #refusedBody(request: HttpRequest): HttpResponse | null {
    if (!isOwnOrigin(request, this.#dependencies.gateway())) return foreignOrigin(request);
    const type = request.header("content-type") ?? "";
    if (!/^application\/json(\s*;|$)/i.test(type)) {
      return refusal(
        "request_invalid",
        `invalid content type ${quote(type)}; expected application/json`,
      );
    }
    if (request.body.length <= bodyBytesMax) return null;
    return refusal(
      "body_too_large",
      `body of ${request.body.length} bytes is too long; at most ${bodyBytesMax} are allowed`,
    );
  }

  #cookie(request: HttpRequest, token: string, seconds: number): string {
    const secure = isSecure(request, this.#dependencies.gateway()) ? "; Secure" : "";
    return `${cookieName}=${token}; Path=/portal; Max-Age=${seconds}; HttpOnly; SameSite=Strict${secure}`;
  }
}

function redirect(): HttpResponse {
  return { ...emptyAnswer({ location: pagePath }), status: 308 };
}

const upgradeAnswer: HttpResponse = {
  ...refusal("http_method", "plain HTTP request; expected a WebSocket (Upgrade: websocket)"),
  status: 426,
};

function foreignOrigin(head: HttpHead): HttpResponse {
  const origin = head.header("origin");
  return {
    ...refusal(
      "request_invalid",
      `request not from the portal's own page: header Origin is ${quote(origin)}`,
    ),
    status: 403,
  };
}

/** Answers every HTTP method with the portal's headers. */
function pathOf(handlers: Readonly<Record<string, Handler>>): Path {
  const allow = Object.keys(handlers).join(", ");
  return {
    methods: everyMethod,
    refusal,
    handle: (request) => {
      const handler = Object.hasOwn(handlers, request.method)
        ? handlers[request.method]
        : undefined;
      if (handler) return handler(request);
      return refusal("http_method", `method ${request.method} is not allowed; expected ${allow}`, {
        headers: { allow },
      });
    },
  };
}
