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
const dialect = SQLDialect.define({
  ...PostgreSQL.spec,
  keywords: PostgreSQL.spec.keywords.split(" ").filter((/** @type {string} */ word) => !NAMES.has(word)).join(" "),
});

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
  return [dialect.extension, data.of({ autocomplete: names }), data.of({ autocomplete: keywordsUndotted })];
}
