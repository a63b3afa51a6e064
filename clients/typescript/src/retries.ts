/**
 * Which requests are sent again, and after how long.
 *
 * A 429 or 503 with `Retry-After` is the platform's word that nothing ran: every request is repeated.
 * A lost answer says nothing: only a request that may happen twice is repeated.
 */

import type { ProblemError } from "./errors.js";

export interface Retries {
  /** Repetitions after the first attempt; 3 without it. */
  most?: number;
  /** A Retry-After beyond it is not waited for; 30 without it. */
  longestPauseS?: number;
  /** The first of the pauses that grow; 0.25 without it. */
  firstPauseS?: number;
}

// Nothing ran. Another request of the same key or transaction runs, which may be this one's first sending;
// or a machine was asked that does not own the transaction, and another one is next.
const NOT_NOW = new Set(["idempotency_key_in_use", "transaction_busy", "transaction_elsewhere"]);
const GATEWAY = new Set([502, 503, 504]);

/** Return the seconds to wait, undefined to throw. */
export function pauseAfterProblem(
  retries: Retries,
  problem: ProblemError,
  attempt: number,
  isRepeatable: boolean,
): number | undefined {
  if (attempt >= (retries.most ?? 3)) return undefined;
  const wait = problem.retryAfterS;
  if ((problem.status === 429 || problem.status === 503) && wait !== undefined) {
    if (problem.code.startsWith("http_") && !isRepeatable) return undefined;
    return wait <= (retries.longestPauseS ?? 30) ? spread(wait) : undefined;
  }
  const mayPass = GATEWAY.has(problem.status) || NOT_NOW.has(problem.code);
  return isRepeatable && mayPass ? backoff(retries, attempt) : undefined;
}

/** Return the seconds to wait after a request without an answer, undefined to throw. */
export function pauseAfterFailure(
  retries: Retries,
  attempt: number,
  isRepeatable: boolean,
): number | undefined {
  return attempt < (retries.most ?? 3) && isRepeatable ? backoff(retries, attempt) : undefined;
}

function backoff(retries: Retries, attempt: number): number {
  return spread((retries.firstPauseS ?? 0.25) * 2 ** attempt);
}

/** Add up to a fifth: clients that were refused together do not come back together. */
function spread(pauseS: number): number {
  return pauseS * (1 + Math.random() / 5);
}
