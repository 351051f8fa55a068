// A request that submits, in the queue of submissions.

import type { HttpRequest, HttpResponse } from "../http/types.ts";
import { waitedTooLongAnswer } from "./overload-answers.ts";
import type { QueuedSubmission } from "./submission-queue.ts";

type Begin = () => HttpResponse | Promise<HttpResponse>;

/** A class: many requests wait, and each of them would otherwise have three functions of its own. */
export class QueuedRequest implements QueuedSubmission<HttpResponse> {
  readonly #fastPath: HttpRequest["fastPath"];
  readonly #begin: Begin;

  constructor({ fastPath }: HttpRequest, begin: Begin) {
    this.#fastPath = fastPath;
    this.#begin = begin;
  }

  /** A refusal cannot undo what the fast path has sent, and a partner's answer to it should not wait. */
  claim(): boolean {
    return Boolean(this.#fastPath?.connection.claim());
  }

  begin(): HttpResponse | Promise<HttpResponse> {
    return this.#begin();
  }

  refuse(): HttpResponse {
    return waitedTooLongAnswer;
  }
}
