// @ts-check
/** What a run that failed says: which statement it was, why, and what became of the others. */

import { Cancelled, Problem, sentenceOf } from "../lib/problem.js";
import { statementsOf } from "./lexer.js";
import { GivenUp } from "./run.js";

/** Where no answer came. */
const UNKNOWN = "It may have been carried out: look before you run it again.";

/** @param {unknown} error that ended a run */
export function endOf(error) {
  if (error instanceof GivenUp) return `Not waited for any more. ${UNKNOWN}`;
  return error instanceof Cancelled ? "Cancelled." : "Failed.";
}

/**
 * Return the lines to show.
 * @param {unknown} error
 * @param {string} text that ran
 */
export function failureOf(error, text) {
  if (!(error instanceof Problem)) return [sentenceOf(error)];
  if (error.code === "unreachable") return [`${error.sentence} ${UNKNOWN}`];
  const { line, column, detail, title, hint, sqlstate, retryable } = error.content;
  const place = line ? `Line ${line}, column ${column}: ` : "";
  const code = sqlstate ? ` (${sqlstate})` : "";
  const lines = [`${whichOf(error, text)}${place}${detail || title}${code}`, hint && `Hint: ${hint}`, fateOf(error, text)];
  if (retryable) lines.push("It may work when you run it again.");
  if (error.retryAfterS) lines.push(error.sentence);
  return lines.filter(Boolean);
}

/**
 * @param {Problem} error
 * @param {string} text
 */
function whichOf({ content }, text) {
  const total = statementsOf(text).length;
  return content.statement && total > 1 ? `Statement ${content.statement} of ${total} failed. ` : "";
}

/**
 * Return what became of the run's other statements: a text is one transaction, unless it ends one itself.
 * @param {Problem} error
 * @param {string} text
 */
function fateOf({ content, code }, text) {
  const { outcome, statement } = content;
  if (outcome === "committed") return "What ran before is stored.";
  if (outcome === "unknown") return "What was committed before is stored; look before you run it again.";
  if (outcome === "rolled_back" || code === "query_timeout") return "Everything was rolled back: nothing of this run is stored.";
  if (code !== "sql_error" || statementsOf(text).length < 2) return "";
  if (!statement) return "Nothing ran: PostgreSQL reads the whole text first.";
  if (statement === 1) return "Nothing ran after it, and nothing of this run is stored.";
  return "The statements before it were rolled back, and those after it did not run: nothing of this run is stored.";
}
