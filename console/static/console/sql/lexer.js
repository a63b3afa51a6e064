// @ts-check
/**
 * Where statements begin and end, as PostgreSQL's lexer and psql find it: in the whole text, which the
 * editor's own parser reads in part only. Source: scan.l and psqlscan.l of PostgreSQL.
 */

const TOKEN =
  /(?<blank>[ \t\n\r\f\v]+|--[^\n\r]*)|(?<block>\/\*)|(?<escaped>[eE]')|(?<quote>['"])|(?<dollar>\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$)|(?<word>[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*)|[^]/y;
const COMMENT_EDGE = /\/\*|\*\//g;
/** Between two parts of one literal: a line break, with blanks and comments around it. */
const CONTINUED = /(?:[ \t\f\v]|--[^\n\r]*(?=[\n\r]))*[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*(?=[\n\r]))*'/y;
const ROUTINE = /^create (?:or replace )?(?:function|procedure)\b/;

/** @typedef {{from: number, to: number}} Bounds of a statement, with its semicolon and without comments around it */
/** @typedef {{text: string, from: number, to: number, isWord: boolean, isBlank: boolean}} Token comments are blank */

/**
 * Return the bounds of a text's statements. One that does not end extends to the text's end.
 * @param {string} text
 * @returns {Bounds[]}
 */
export function statementsOf(text) {
  /** @type {Bounds[]} */
  const found = [];
  /** @type {Statement | null} */
  let open = null;
  for (const token of tokensOf(text)) {
    if (token.isBlank || (!open && token.text === ";")) continue;
    open ??= new Statement(token.from);
    if (!open.take(token)) continue;
    found.push({ from: open.from, to: token.to });
    open = null;
  }
  return open ? [...found, { from: open.from, to: open.to }] : found;
}

class Statement {
  /** @param {number} from */
  constructor(from) {
    this.from = from;
    this.to = from;
    this.parens = 0;
    /** Open BEGIN ATOMIC and, in it, CASE. */
    this.blocks = 0;
    /** Its first words: CREATE OR REPLACE FUNCTION has four. @type {string[]} */
    this.words = [];
    this.before = "";
  }

  /**
   * Take a token; return true if it ends the statement.
   * @param {Token} token
   */
  take({ text, to, isWord }) {
    this.to = to;
    const word = isWord ? text.toLowerCase() : text;
    if (isWord && this.words.length < 4) this.words.push(word);
    if (text === "(") this.parens += 1;
    if (text === ")") this.parens = Math.max(0, this.parens - 1);
    const isName = this.before === "as" || this.before === ".";
    if (this.blocks && !isName) this.blocks += word === "case" ? 1 : word === "end" ? -1 : 0;
    if (word === "atomic" && this.before === "begin" && !this.parens && ROUTINE.test(this.words.join(" "))) this.blocks += 1;
    this.before = word;
    return text === ";" && !this.parens && !this.blocks;
  }
}

/**
 * @param {string} text
 * @returns {Generator<Token>}
 */
export function* tokensOf(text) {
  for (let from = 0; from < text.length; ) {
    TOKEN.lastIndex = from;
    const match = /** @type {RegExpExecArray} */ (TOKEN.exec(text));
    const { blank, block, escaped, quote, dollar, word } = match.groups ?? {};
    let to = TOKEN.lastIndex;
    if (block) to = endOfComment(text, to);
    else if (escaped) to = endOfEscaped(text, to);
    // A doubled quote ends one literal and begins the next, which is the same here.
    else if (quote || dollar) to = endOf(text, quote ?? dollar, to);
    yield { text: text.slice(from, to), from, to, isWord: Boolean(word), isBlank: Boolean(blank || block) };
    from = to;
  }
}

/**
 * @param {string} text
 * @param {string} closing
 * @param {number} at
 */
function endOf(text, closing, at) {
  const end = text.indexOf(closing, at);
  return end < 0 ? text.length : end + closing.length;
}

/**
 * Return the end of a block comment; they can be nested.
 * @param {string} text
 * @param {number} at
 */
function endOfComment(text, at) {
  COMMENT_EDGE.lastIndex = at;
  for (let depth = 1; depth > 0; ) {
    const edge = COMMENT_EDGE.exec(text);
    if (!edge) return text.length;
    depth += edge[0] === "/*" ? 1 : -1;
    at = COMMENT_EDGE.lastIndex;
  }
  return at;
}

/**
 * Return the end of E'…', in which a backslash takes the next character.
 * @param {string} text
 * @param {number} at
 */
function endOfEscaped(text, at) {
  for (;;) {
    while (at < text.length && text[at] !== "'") at += text[at] === "\\" ? 2 : 1;
    if (at >= text.length) return text.length;
    at += 1;
    CONTINUED.lastIndex = at;
    if (text[at] === "'") at += 1;
    else if (CONTINUED.test(text)) at = CONTINUED.lastIndex;
    else return at;
  }
}
