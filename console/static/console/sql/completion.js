// @ts-check
/** What the editor completes: keywords, and the names of the database's schemas, tables and columns. */

import { PostgreSQL, SQLDialect, keywordCompletionSource, schemaCompletionSource } from "../../vendor/codemirror.js";

/** Words that the grammar lists, that PostgreSQL lets name columns, and that mostly do. */
const NAMES = new Set(
  (
    "count data day hour id key label length level location message month name names number owner path position " +
    "session size source state type types value version year"
  ).split(" "),
);
const KEYWORDS = PostgreSQL.spec.keywords.split(" ").filter((/** @type {string} */ word) => !NAMES.has(word));
const dialect = SQLDialect.define({ ...PostgreSQL.spec, keywords: KEYWORDS.join(" ") });
const isKeyword = new Set(KEYWORDS);

/** Behind these, up to the cursor, the user invents a name. */
const INVENTED = [
  /\bas\s+$/i,
  /\bwith\s+(?:recursive\s+)?$/i,
  /\b(?:rename|rename\s+column\s+\S+)\s+to\s+$/i,
  /\badd\s+(?:column\s+)?(?:if\s+not\s+exists\s+)?$/i,
  /\bconstraint\s+$/i,
  /\bcreate\s+(?:\w+\s+)*(?:table|view|index|schema|sequence|type|domain|function|procedure|trigger|policy|rule)\s+(?:concurrently\s+)?(?:if\s+not\s+exists\s+)?$/i,
  // A column of a new table.
  /\bcreate\s+(?:\w+\s+)*table\s(?:(?!\bas\b)[^;])*[(,]\s*$/i,
];
/** Where AS does not lead to a name: a query of a table or view, a type. */
const NO_ALIAS = /\b(?:create\s+(?:\w+\s+)*(?:table|view)\b[^;()]*|prepare\b[^;]*|cast\s*\([^()]*)\sas\s+$/i;
/** A word or a closing bracket in front of what is typed: behind a name only an alias or a keyword follows. */
const BEHIND = /(?:([\p{L}_][\p{L}\p{N}_$]*)|["')\]\p{N}])\s+$/u;
/** Enough to see a statement's beginning by. */
const LOOKED_AT = 2_000;

/**
 * Return a source that offers nothing where a name is new, unless the user asks for the list.
 * @param {any} source
 * @param {boolean} areNames the source offers names and no keywords
 */
function offered(source, areNames) {
  return (/** @type {any} */ context) => {
    if (context.explicit) return source(context);
    const typed = context.matchBefore(/[\p{L}\p{N}_$]*/u)?.from ?? context.pos;
    const before = context.state.sliceDoc(Math.max(0, typed - LOOKED_AT), typed);
    if (INVENTED.some((place) => place.test(before)) && !NO_ALIAS.test(before)) return null;
    const behind = areNames && BEHIND.exec(before);
    return behind && !isKeyword.has(behind[1]?.toLowerCase() ?? "") ? null : source(context);
  };
}

/**
 * Keywords, but behind a dot, where only what the name before it has can follow: CodeMirror's own source
 * leaves them out at the dot alone, and offers them again at the next letter.
 */
const keywords = keywordCompletionSource(dialect, true);
const keywordsUndotted = (/** @type {any} */ context) => (context.matchBefore(/\.[\p{L}\p{N}_$]*/u) ? null : keywords(context));

/** PostgreSQL's syntax with completion of names. @param {any[]} tables as /v1/sql/schema lists them */
export function languageOf(tables) {
  /** @type {Record<string, Record<string, any[]>>} */
  const schema = {};
  for (const table of tables) {
    const columns = table.columns.map((/** @type {any} */ column) => ({
      label: column.name,
      detail: column.type,
      type: "property",
    }));
    (schema[table.schema] ??= {})[table.name] = columns;
  }
  const names = schemaCompletionSource({ dialect, schema, defaultSchema: "public" });
  const { data } = dialect.language;
  return [
    dialect.extension,
    data.of({ autocomplete: offered(names, true) }),
    data.of({ autocomplete: offered(keywordsUndotted, false) }),
  ];
}
