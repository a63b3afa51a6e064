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
/** Return the seconds to wait, undefined to throw. */
export declare function pauseAfterProblem(retries: Retries, problem: ProblemError, attempt: number, isRepeatable: boolean): number | undefined;
/** Return the seconds to wait after a request without an answer, undefined to throw. */
export declare function pauseAfterFailure(retries: Retries, attempt: number, isRepeatable: boolean): number | undefined;
