// @ts-check
/** Statements that change every row of a table: DELETE and UPDATE without WHERE, wherever they are. */

import { statementsOf, tokensOf } from "./lexer.js";

/** Words behind which the statement itself comes. */
const LEADING = new Set(["with", "explain", "prepare"]);
/** Behind these a word of theirs is a name. */
const BEFORE_A_NAME = new Set(["with", "recursive", "prepare", ","]);
/** Statements that are neither. */
const OTHERS = new Set(["select", "insert", "merge", "values", "table", "execute"]);
/** Words of PL/pgSQL behind which a statement begins. */
const PLPGSQL = new Set(["begin", "then", "else", "loop", "in"]);
/** They keep a statement for later. */
const KEEPING = /^create (?:or replace )?(?:function|procedure|rule)$/;

/** @typedef {import("./lexer.js").Bounds & {verb: string}} Unqualified */

/**
 * Return the statements of a text that change every row of a table.
 * @param {string} text
 * @returns {Unqualified[]}
 */
export function unqualifiedIn(text) {
  return statementsOf(text).flatMap(({ from, to }) => {
    const verb = verbOf(text.slice(from, to), false);
    return verb ? [{ from, to, verb }] : [];
  });
}

/**
 * Return "delete" or "update" if a statement does so to every row, "" if not.
 * @param {string} text
 * @param {boolean} isBody of a routine in PL/pgSQL
 */
function verbOf(text, isBody) {
  const words = [];
  let [found, isMeasured] = ["", false];
  /** What is in parentheses may be a statement of its own. */
  const levels = [new Level(isBody)];
  const leave = () => {
    const verb = levels.pop()?.unqualified ?? "";
    found ||= verb;
  };
  for (const token of tokensOf(text)) {
    if (token.isBlank) continue;
    const word = token.isWord ? token.text.toLowerCase() : token.text;
    if (words.length < 4) words.push(word);
    isMeasured ||= word === "analyze" || word === "analyse";
    if (word === ")" && levels.length > 1) leave();
    else levels.at(-1)?.take(word);
    if (word === "(") levels.push(new Level(false));
    if (words[0] === "do" && !isBody) found ||= verbInBody(token.text);
  }
  while (levels.length > 0) leave();
  const [first, second, third, fourth] = words;
  const begin = second === "or" ? `${first} or ${third} ${fourth}` : `${first} ${second}`;
  return KEEPING.test(begin) || (first === "explain" && !isMeasured) ? "" : found;
}

/**
 * The same of the block of a DO; "" for any other word of it.
 * @param {string} literal
 */
function verbInBody(literal) {
  const dollar = /^(\$\w*\$)([^]*)\1$/.exec(literal);
  const body = dollar ? dollar[2] : /^'[^]*'$/.test(literal) ? literal.slice(1, -1).replaceAll("''", "'") : "";
  return statementsOf(body).map(({ from, to }) => verbOf(body.slice(from, to), true)).find(Boolean) ?? "";
}

class Level {
  /** @param {boolean} isBody */
  constructor(isBody) {
    this.isBody = isBody;
    this.begin();
  }

  begin() {
    this.first = this.before = "";
    /** DELETE or UPDATE, until FROM or SET shows that it is no name. */
    this.candidate = "";
    this.verb = "";
    this.isQualified = false;
  }

  /** @param {string} word a token, in lower case */
  take(word) {
    const { before, first } = this;
    const isName = before === "." || (before === "as" && first !== "prepare");
    this.first ||= word;
    this.before = word;
    if (isName) return;
    if (this.verb === "delete" || this.verb === "update") this.isQualified ||= word === "where";
    else if (this.isBody && PLPGSQL.has(word) && first !== "merge") this.begin();
    else if (this.verb === "") this.#seek(word, before, first);
  }

  /**
   * @param {string} word
   * @param {string} before
   * @param {string} first
   */
  #seek(word, before, first) {
    const mayBegin = first === "" || (LEADING.has(first) && !BEFORE_A_NAME.has(before));
    if (this.candidate === "delete" && before === "delete" && word === "from") this.verb = "delete";
    else if (this.candidate === "update" && word === "set") this.verb = "update";
    else if (mayBegin && (word === "delete" || word === "update")) this.candidate = word;
    else if (mayBegin && OTHERS.has(word)) this.verb = word;
  }

  /** The verb, if there is no WHERE. */
  get unqualified() {
    return ["delete", "update"].includes(this.verb) && !this.isQualified ? this.verb : "";
  }
}
