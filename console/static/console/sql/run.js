// @ts-check
/** One run at a time: the request, its clock, its cancellation. */

import { call } from "../lib/api.js";
import { Cancelled, Problem } from "../lib/problem.js";

/** The visitor stopped waiting, so the outcome of the request is unknown. */
export class GivenUp extends Cancelled {}

const TICK_MS = 100;
const PATH = "/v1/sql";

/** @typedef {{severity: string, sqlstate: string, message: string, detail?: string, hint?: string, line?: number, column?: number}} Notice */
/** @typedef {{columns: any[], rows: import("../grid/values.js").Value[][], row_count: number, command: string, truncated: boolean, plan?: any}} Result */
/**
 * @typedef {object} Answer
 * @property {Result[]} results of all statements
 * @property {Notice[]} notices
 * @property {number} elapsedMs
 */

export class Run {
  /** @param {(elapsedMs: number) => void} onTick */
  constructor(onTick) {
    this.onTick = onTick;
    /** @type {{id: string, abort: AbortController} | null} */
    this.current = null;
  }

  get isRunning() {
    return this.current !== null;
  }

  /**
   * Run a text.
   * @param {object} body of POST /v1/sql
   * @param {boolean} mayWrite the page asks before it is left meanwhile
   * @returns {Promise<Answer>}
   * @throws {Problem | Cancelled} GivenUp if the outcome is unknown
   */
  async start(body, mayWrite) {
    const current = { id: crypto.randomUUID(), abort: new AbortController() };
    this.current = current;
    const began = performance.now();
    this.onTick(0);
    const timer = setInterval(() => this.onTick(performance.now() - began), TICK_MS);
    try {
      const options = { headers: { "X-Request-Id": current.id }, signal: current.abort.signal, isRead: !mayWrite };
      const answer = await call("POST", PATH, { rows: "arrays", values: "text", ...body }, options);
      return {
        results: answer.results ?? [answer],
        notices: answer.notices,
        elapsedMs: answer.stats.elapsed_ms,
      };
    } catch (error) {
      if (error instanceof Problem && error.code === "query_cancelled") throw new Cancelled();
      if (current.abort.signal.aborted) throw new GivenUp();
      throw error;
    } finally {
      clearInterval(timer);
      this.current = null;
    }
  }

  /** Cancel the running request in the database. */
  async cancel() {
    const { current } = this;
    if (!current) return;
    try {
      await call("DELETE", `${PATH}/${current.id}`);
    } catch {
      // It waits for its turn still, or another process has it: a request whose client goes away is
      // cancelled as well.
      current.abort.abort();
    }
  }
}
