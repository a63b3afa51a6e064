// @ts-check
/** What the API refuses with (RFC 9457), as an error that pages can show. */

/** @typedef {{field: string, code: string, message: string}} FieldError */

export class Problem extends Error {
  /**
   * @param {number} status 0 where no answer came
   * @param {Record<string, any>} content the problem document
   * @param {number} [retryAfterS]
   */
  constructor(status, content, retryAfterS = 0) {
    super(content.detail || content.title || "Something went wrong.");
    this.status = status;
    /** @type {string} */
    this.code = content.code || "unknown";
    /** @type {FieldError[]} */
    this.fields = content.errors || [];
    this.content = content;
    this.retryAfterS = retryAfterS;
  }

  /** The sentences to show: title, detail, what may help, and when to come back. */
  get sentence() {
    const { title, detail, hint } = this.content;
    const said = [title, detail, hint].filter((text, index, all) => text && all.indexOf(text) === index);
    if (this.retryAfterS > 0) said.push(`Try again in ${duration(this.retryAfterS)}.`);
    return said.join(" ") || this.message;
  }
}

/**
 * Return the sentence to show for an error; an error that is no Problem is a bug of the page.
 * @param {unknown} error
 */
export function sentenceOf(error) {
  return error instanceof Problem ? error.sentence : "Something went wrong in this page. Reload it and try again.";
}

/** What a person cancels is no failure, and is not shown as one. */
export class Cancelled extends Error {}

/**
 * @param {Response} answer
 * @returns {Promise<Problem>}
 */
export async function problemOf(answer) {
  const retryAfterS = Number(answer.headers.get("Retry-After") || 0);
  try {
    return new Problem(answer.status, await answer.json(), retryAfterS);
  } catch {
    return new Problem(answer.status, { title: "The service did not answer as expected." });
  }
}

/** A page that shows another user or environment than its calls would go to. */
export function outdated() {
  const title = "The environment or the user may be another one than this page shows. Reload this page to go on.";
  return new Problem(0, { code: "outdated", title });
}

/** No answer at all. */
export function unreachable() {
  const title = "The service cannot be reached. Check your connection and try again.";
  return new Problem(0, { code: "unreachable", title });
}

/**
 * The service took a call, or did not, and was silent.
 * @param {number} seconds
 * @param {boolean} isRead
 */
export function unanswered(seconds, isRead) {
  const unknown = isRead ? "" : " It is not known whether this was done: reload the page to see.";
  return new Problem(0, { code: "no_answer", is_read: isRead, title: `No answer came within ${duration(seconds)}.${unknown}` });
}

/** @param {number} seconds */
function duration(seconds) {
  if (seconds < 90) return `${seconds} seconds`;
  return seconds < 5400 ? `${Math.ceil(seconds / 60)} minutes` : `${Math.ceil(seconds / 3600)} hours`;
}
