// @ts-check
/** Parts of a page that a role may not see, or that are away at the moment. */

import { Problem } from "./problem.js";

/** Not allowed, not there, not reached. */
const MISSING = new Set([0, 403, 404, 503]);

/**
 * Return an answer, or null where there is none for this user now.
 * @template T
 * @param {Promise<T>} answer
 * @returns {Promise<T | null>}
 */
export async function optional(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Problem && MISSING.has(error.status)) return null;
    throw error;
  }
}
