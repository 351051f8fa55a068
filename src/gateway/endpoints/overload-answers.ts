// Refusals of submissions under overload. They are made once, because many are sent.

import { refusalAnswer } from "./answers.ts";

export const submissionsUnderWayMax = 512;
const retryHeaders = { "retry-after": "1" };

export const tooManyAnswer = refusalAnswer(
  "overloaded",
  `too many submissions in progress: at most ${submissionsUnderWayMax}; retry in 1 s`,
  { headers: retryHeaders },
);
export const waitedTooLong = "submissions arrive faster than they can be processed; retry in 1 s";
export const waitedTooLongAnswer = refusalAnswer("overloaded", waitedTooLong, {
  headers: retryHeaders,
});
