// @ts-check
/**
 * Calls of the public API. Tokens are in cookies that no script can read. The header marks a
 * request of the console; the browser adds the origin.
 */

import { askWhile } from "./leaving.js";
import { Cancelled, outdated, Problem, problemOf, unanswered, unreachable } from "./problem.js";
import { upload } from "./upload.js";

/** Problems that mean the sign-in is over. */
const SIGNED_OUT = new Set(["not_authenticated", "token_expired", "token_invalid", "session_revoked"]);

/** @typedef {(proof: "password" | "second_factor") => Promise<void>} StepUp */

/** @type {{stepUp: StepUp | null, signedOut: (() => void) | null, emailRequired: (() => void) | null}} */
const handlers = { stepUp: null, signedOut: null, emailRequired: null };

/** @type {Promise<boolean> | null} */
let refreshing = null;
/** How often the tokens were refreshed. */
let refreshes = 0;
/** Refused refreshes that are repeated after their Retry-After. */
const REPEATED = new Set([429, 503]);
const MAX_REPEATS = 2;
const MAX_WAIT_S = 10;
/** The server ends its longest statement before, and anything else that it answers as a whole. */
const ANSWER_S = Number(document.documentElement.dataset.answerS);
let isOutdated = false;
/** The running call that changes the session: the others wait for its outcome. @type {Promise<void> | null} */
let last = null;
/** The ETag of an answer. @type {WeakMap<object, string>} */
const versions = new WeakMap();

/** Refuse every call from now on, until the page is loaded anew. */
export function callNothing() {
  isOutdated = true;
}

/**
 * Set the handlers for a call that needs a recent proof, for the end of the sign-in, and for an
 * account that lost its address.
 * @param {Partial<typeof handlers>} given
 */
export function handle(given) {
  Object.assign(handlers, given);
}

/**
 * headers: beside or instead of the usual ones. signal: ends the call, which then throws Cancelled.
 * as: how the response is read. progressed: called with the number of bytes of a Blob sent so far.
 * isRead: it changes nothing, and the page can be left meanwhile without a question. What the user can
 * end (signal), and what is sent or read as a Blob, may take as long as it does; any other call ends
 * without an answer after ANSWER_S. ofSession: it is about the session, not about what the page shows.
 * @typedef {{headers?: Record<string, string>, signal?: AbortSignal, as?: "json" | "blob",
 *   progressed?: (sent: number) => void, isRead?: boolean, ofSession?: boolean}} Options
 */

/**
 * Call the API and return its response. An expired access token is refreshed once; a call that
 * needs a proof of identity asks for it and is repeated.
 * @param {string} method
 * @param {string} path
 * @param {object} [body] sent as JSON; a Blob as it is
 * @param {Options} [options]
 * @returns {Promise<any>} null for an answer without a body
 * @throws {import("./problem.js").Problem}
 */
export async function call(method, path, body, options = {}) {
  const before = refreshes;
  let { problem, content } = await ask(method, path, body, options);
  // A superseded token was sent before another tab's newer one was in the cookies.
  const isSuperseded = problem?.code === "token_superseded";
  if (isSuperseded || (problem?.code === "token_expired" && (await refreshed(before)))) {
    ({ problem, content } = await ask(method, path, body, options));
  }
  if (problem?.code === "step_up_required" && handlers.stepUp) {
    await handlers.stepUp(problem.content.proof);
    ({ problem, content } = await ask(method, path, body, options));
  }
  if (problem) {
    const leave = leaveFor(problem.code);
    if (leave) {
      leave();
      // The user leaves the page: nothing that waits for this response continues.
      return new Promise(() => {});
    }
    throw problem;
  }
  return content;
}

/**
 * Return the version of an answer of the API, '' for one that has none.
 * @param {object} answer
 */
export function versionOf(answer) {
  return versions.get(answer) ?? "";
}

/** @param {string} code of a problem that no form of the page can solve */
function leaveFor(code) {
  if (SIGNED_OUT.has(code)) return handlers.signedOut;
  return code === "email_required" ? handlers.emailRequired : null;
}

/**
 * @param {string} path
 * @returns {Promise<any>}
 */
export function get(path) {
  return call("GET", path);
}

/**
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<any>}
 */
export function post(path, body = {}) {
  return call("POST", path, body);
}

/**
 * Change the session by the last call of this page: until it is loaded anew, the others would go to
 * another environment than the one it shows. Where it is refused, the page goes on.
 * @param {string} path
 * @param {object} [body]
 * @throws {import("./problem.js").Problem}
 */
export async function callLast(path, body = {}) {
  if (last) throw outdated();
  last = call("POST", path, body, { ofSession: true });
  try {
    await last;
    isOutdated = true;
  } catch (error) {
    // Without an answer of the service it may have been done.
    if (error instanceof Problem && (error.status === 0 || error.status >= 500)) isOutdated = true;
    throw error;
  } finally {
    last = null;
  }
}

/**
 * Read what only a body can name.
 * @param {string} path
 * @param {object} body
 * @returns {Promise<any>}
 */
export function query(path, body) {
  return call("POST", path, body, { isRead: true });
}

/**
 * Return every row of a list, page by page.
 * @param {string} path
 * @returns {Promise<any[]>}
 */
export async function list(path) {
  const rows = [];
  for (let next = `${path}?page_size=200`; next; ) {
    const page = await get(next);
    rows.push(...page.results);
    next = page.next ? path + new URL(page.next).search : "";
  }
  return rows;
}

/**
 * Send a request and read its answer.
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @param {Options} [options]
 * @returns {Promise<{problem: import("./problem.js").Problem | null, content: any}>}
 */
async function ask(method, path, body, options = {}) {
  const { signal, as, isRead = method === "GET", ofSession } = options;
  if (last && !ofSession) await last.catch(() => {});
  if (isOutdated && !ofSession) throw outdated();
  const settled = isRead || ofSession ? () => {} : askWhile(() => true);
  const late = new AbortController();
  const isLimited = !signal && as !== "blob" && !(body instanceof Blob);
  const timer = isLimited ? setTimeout(() => late.abort(), ANSWER_S * 1000) : 0;
  try {
    const answer = await send(method, path, body, { ...options, signal: signal ?? late.signal });
    if (!answer.ok) return { problem: await problemOf(answer), content: null };
    return { problem: null, content: await contentOf(answer, as) };
  } catch (error) {
    if (signal?.aborted) throw new Cancelled();
    if (late.signal.aborted) throw unanswered(ANSWER_S, isRead);
    // As fetch has it, also for a connection that breaks within the answer.
    throw error instanceof TypeError ? unreachable() : error;
  } finally {
    clearTimeout(timer);
    settled();
  }
}

/**
 * @param {Response} answer
 * @param {Options["as"]} as
 */
async function contentOf(answer, as) {
  // 202 of a cancellation has no body either.
  if (answer.status === 204 || answer.headers.get("Content-Length") === "0") return null;
  if (as === "blob") return answer.blob();
  const content = await answer.json();
  // A proxy that compresses an answer marks its ETag as weak; what was read is the same.
  versions.set(content, (answer.headers.get("ETag") ?? "").replace(/^W\//, ""));
  return content;
}

/**
 * @param {string} method
 * @param {string} path
 * @param {object | undefined} body
 * @param {Options} options
 * @returns {Promise<Response>}
 */
function send(method, path, body, { headers: own = {}, signal, progressed }) {
  const isJson = body !== undefined && !(body instanceof Blob);
  /** @type {Record<string, string>} */
  const headers = { "X-Zonal-Console": "1", Accept: "application/json" };
  if (isJson) headers["Content-Type"] = "application/json";
  if (progressed && body instanceof Blob) {
    return upload(path, { method, headers: { ...headers, ...own }, body, signal }, progressed);
  }
  return fetch(path, {
    method,
    headers: { ...headers, ...own },
    body: isJson ? JSON.stringify(body) : /** @type {Blob | undefined} */ (body),
    signal,
    credentials: "same-origin",
    redirect: "error",
    referrerPolicy: "no-referrer",
  });
}

/**
 * Refresh once for all waiting calls; return false if the sign-in is over.
 * @param {number} before how often that was done when the call was sent
 * @throws {import("./problem.js").Problem} where the refresh failed and may work later
 */
async function refreshed(before) {
  if (refreshes > before) return true;
  refreshing ??= refresh().finally(() => {
    refreshing = null;
  });
  return refreshing;
}

/** Refresh; wait where the service asks for a short wait. Only a refused token ends the sign-in. */
async function refresh() {
  for (let repeats = 0; ; repeats += 1) {
    const { problem } = await ask("POST", "/v1/auth/refresh", {}, { ofSession: true });
    if (!problem) {
      refreshes += 1;
      return true;
    }
    if (problem.code === "token_superseded") return true;
    const hasNoToken = problem.fields.some(({ field }) => field === "refresh_token");
    if (problem.status === 401 || hasNoToken) return false;
    const { retryAfterS } = problem;
    const isSoon = REPEATED.has(problem.status) && retryAfterS > 0 && retryAfterS <= MAX_WAIT_S;
    if (!isSoon || repeats === MAX_REPEATS) throw problem;
    await new Promise((done) => setTimeout(done, retryAfterS * 1000));
  }
}
