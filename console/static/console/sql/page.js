// @ts-check
/** The SQL page: a text, and what the database answers. */

import { bindCopyMenu } from "../grid/copy_menu.js";
import { bindDrawer } from "../grid/drawer.js";
import { openPage } from "../frame/shell.js";
import { get } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show } from "../lib/dom.js";
import { TabDraft } from "../lib/drafts.js";
import { onClick } from "../lib/forms.js";
import { Cancelled, Problem, sentenceOf } from "../lib/problem.js";
import { tell } from "../lib/status.js";
import { bindTablist, choose } from "../lib/tablist.js";
import { Editor } from "./editor.js";
import { bindExports } from "./exports.js";
import { endOf, failureOf } from "./failure.js";
import { HistoryList } from "./history.js";
import { bindInPart } from "./in_part.js";
import { statementsOf } from "./lexer.js";
import { Results } from "./results.js";
import { Run } from "./run.js";
import { SavedQueries } from "./saved.js";
import { showSchema } from "./schema_tree.js";
import { bindSplit } from "./split.js";
import { unqualifiedIn } from "./unqualified.js";

const FIRST = "-- Ctrl + Enter runs the selection, or everything; with Shift, the statement at the cursor.\nSELECT version();\n";
const FIRST_TABLE = `CREATE TABLE notes (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  title text NOT NULL,
  made timestamptz NOT NULL DEFAULT now()
);
`;
/** What a reader, whose statements write nothing, is refused: to write, and to call what may write. */
const NOT_READ_ONLY = ["25006", "42501"];
const NO_STATEMENT = "There is no statement at the cursor. Put the cursor into one, or select what you mean.";
/** Statements after which the schema may be another one. */
const CHANGES_SCHEMA = /^(?:CREATE|ALTER|DROP|COMMENT|SELECT INTO|REFRESH)/;
/** In a longer text, statements are not counted at each key. */
const MAX_COUNTED = 50_000;

/** @typedef {import("./editor.js").Part} Part */

await openPage(async (who) => {
  bindDrawer();
  bindSplit();
  const environment = who.environment.name;
  fill(byId("main"), { where: environment });
  const draft = new TabDraft(who, "sql");
  const isOwn = draft.isOwn;
  const results = new Results();
  const run = new Run((elapsedMs) => {
    byId("elapsed").textContent = `${(elapsedMs / 1000).toFixed(1)} s`;
  });
  let ran = "";
  let mayWrite = false;
  let mayCreate = false;
  /** The number of statements, infinite where they are not counted. */
  let statements = 0;
  /** @type {SavedQueries | null} */
  let saved = null;
  const editor = new Editor(byId("editor"), {
    text: draft.read() ?? FIRST,
    onRun: () => void runChosen().catch(tell),
    onRunStatement: () => void runStatement().catch(tell),
    onSave: () => saved?.ask(),
    // At once, and not when the page goes: signing out has removed the draft by then.
    onChange: (text) => {
      draft.keep(text);
      saved?.label(text);
      count();
    },
    onSelect: () => showScope(),
  });
  await editor.begin();

  function count() {
    const { text } = editor;
    statements = text.length > MAX_COUNTED ? Infinity : statementsOf(text).length;
  }

  /** Say what Run runs. */
  function showScope() {
    const { hasSelection } = editor;
    const isSome = statements > 1 && !hasSelection;
    byId("run").textContent = hasSelection ? "Run selection" : "Run";
    byId("run-scope").textContent = !isSome ? "" : statements === Infinity ? "everything" : `all ${statements} statements`;
    for (const id of ["run-scope", "run-statement"]) show(byId(id), isSome && !run.isRunning);
  }

  async function runChosen() {
    const part = editor.chosen();
    if (run.isRunning || part.text.trim() === "") return;
    await confirmRun(part);
    await start(part, {});
  }

  async function runStatement() {
    const part = atCursor();
    if (!part) return;
    await confirmRun(part);
    await start(part, {});
  }

  /** Return the statement that is meant; say so where there is none. @returns {Part | null} */
  function atCursor() {
    if (run.isRunning) return null;
    const part = editor.statement();
    if (part) return part;
    results.clear();
    editor.clearMark();
    showProblem([NO_STATEMENT]);
    return null;
  }

  /**
   * Ask before a part of a statement runs, and before every row of a table is changed or deleted.
   * @param {Part} part
   * @throws {Cancelled}
   */
  async function confirmRun(part) {
    const isCut = editor.isCut(part);
    const warning = mayWrite ? warningOf(part.text, environment) : null;
    if (!isCut && !warning) return;
    const why = [isCut ? "The selection is not the whole statement. This is what runs." : "", warning?.sentence ?? ""];
    const shown = isCut || !warning ? part.text : warning.statements;
    await asked(part, warning?.title ?? "Run a part of a statement?", why.join(" ").trim(), "Run it", shown);
  }

  /** @param {"plan" | "analyze"} how */
  async function explain(how) {
    const part = atCursor();
    if (!part) return;
    if (how === "plan") await start(part, { explain: true });
    else await measure(part);
  }

  /**
   * Run a statement as a reader and measure it; ask before it is run as the member that it may write as.
   * @param {Part} part
   */
  async function measure(part) {
    const { answer, note } = results;
    const refusal = await start(part, { explain: "analyze", read_only: true }, mayWrite ? NOT_READ_ONLY : []);
    if (!refusal) return;
    // Nothing has happened yet: what was shown stays until the answer to the question.
    if (answer) results.show(answer, note);
    const why = `It is not proved to write nothing. It is run in ${environment}, and what it writes stays written.`;
    const warning = warningOf(part.text, environment)?.sentence ?? "";
    await asked(part, "Run this statement to measure it?", `${why} ${warning}`.trim(), "Run it");
    await start(part, { explain: "analyze" });
  }

  /**
   * Ask before a text runs, which the question shows and the editor marks.
   * @param {Part} part
   * @param {string} title
   * @param {string} why
   * @param {string} action
   * @param {string} [shown]
   * @throws {Cancelled}
   */
  async function asked(part, title, why, action, shown = part.text) {
    await editor.markRun(part);
    try {
      await confirm(title, why, action, shown);
    } catch (error) {
      editor.clearMark();
      throw error;
    }
  }

  /**
   * @param {Part} part
   * @param {{explain?: true | "analyze", read_only?: boolean}} options of the request
   * @param {string[]} expected SQLSTATEs that are returned and not shown
   * @returns {Promise<Problem | null>} a refusal that was expected
   */
  async function start(part, options, expected = []) {
    if (run.isRunning || part.text.trim() === "") return null;
    editor.clearMark();
    editor.closeList();
    results.clear();
    showProblem([]);
    if (part.text !== editor.text) editor.markRun(part).catch(tell);
    busy(true);
    results.say("Running …");
    try {
      const answer = await run.start({ query: part.text, ...options }, mayWrite && !isHarmless(options));
      ran = part.text;
      results.show(answer, options.read_only && mayWrite ? ", measured as a reader" : "");
      results.reveal();
      if (!options.explain) offerInPart(part.text, answer).catch(tell);
      if (answer.results.some((result) => CHANGES_SCHEMA.test(result.command))) loadSchema().catch(tell);
    } catch (error) {
      const isExpected = error instanceof Problem && expected.includes(error.content.sqlstate);
      results.say(isExpected ? "" : endOf(error));
      if (isExpected) return error;
      if (!(error instanceof Cancelled)) refuse(part, error);
    } finally {
      // The searched one has appeared in the meantime.
      editor.closeList();
      busy(false);
      showScope();
    }
    return null;
  }

  /**
   * @param {Part} part
   * @param {unknown} error
   */
  function refuse(part, error) {
    showProblem(failureOf(error, part.text));
    if (!(error instanceof Problem)) throw error;
    offerInPart(part.text, error).catch(tell);
    const { notices, position, statement } = error.content;
    results.showNotices(notices ?? []);
    if (position || statement) editor.mark(part, error.content, error.message).catch(tell);
    else results.reveal();
  }

  const offerInPart = bindInPart((answer) => {
    showProblem([]);
    results.show(answer, ", long values in part");
  });

  async function loadSchema() {
    const found = await get("/v1/sql/schema");
    editor.complete(found.tables);
    showSchema(found, (text) => editor.insert(text));
    const isLedOn = mayCreate && found.tables.length === 0;
    show(byId("first-table"), isLedOn);
    show(byId("no-result"), !isLedOn);
  }

  function writeFirstTable() {
    if (editor.text === FIRST) editor.replace(FIRST_TABLE);
    else editor.insert(FIRST_TABLE);
  }

  const permissions = (await get("/v1/permissions/effective")).permissions;
  mayWrite = permissions.sql?.includes("create") ?? false;
  mayCreate = permissions.schema?.includes("create") ?? false;
  saved = new SavedQueries(editor, new TabDraft(who, "sql-from"), { environment: who.environment.id, mayWrite });
  await saved.openNamed(isOwn);
  addEventListener("popstate", (event) => void saved?.goBack(event.state).catch(tell));
  const past = new HistoryList(who.email, (text) => {
    saved?.leave();
    editor.replace(text);
  });
  bindCopyMenu(results.grid);
  bindExports(results, () => ran);
  onClick(byId("run"), () => runChosen().catch(tell));
  onClick(byId("run-statement"), () => runStatement().catch(tell));
  onClick(byId("explain"), () => explain("plan").catch(tell));
  onClick(byId("analyze"), () => explain("analyze").catch(tell));
  onClick(byId("cancel"), () => run.cancel());
  onClick(byId("write-table"), writeFirstTable);
  const tabs = byId("side-tabs");
  bindTablist(tabs, (tab) => {
    if (tab.id === "tab-history") past.show().catch(tell);
    if (tab.id === "tab-saved") saved?.load().catch(tell);
  });
  choose(tabs, byId("tab-schema"));
  results.clear();
  busy(false);
  count();
  showScope();
  // The page is usable before the schema is there, which makes the database at the first visit.
  loadSchema().catch((error) => {
    byId("schema-none").textContent = sentenceOf(error);
    show(byId("schema-none"));
  });
});

/** True if a request cannot write. @param {{explain?: true | "analyze", read_only?: boolean}} options */
function isHarmless({ explain, read_only }) {
  return explain === true || read_only === true;
}

/** @param {boolean} isBusy */
function busy(isBusy) {
  for (const id of ["run", "explain", "analyze"]) show(byId(id), !isBusy);
  for (const id of ["run-scope", "run-statement"]) if (isBusy) show(byId(id), false);
  show(byId("cancel"), isBusy);
  show(byId("elapsed"), isBusy);
}

/** @param {string[]} lines */
function showProblem(lines) {
  byId("sql-problem").replaceChildren(...lines.map((line) => element("span", line)));
  show(byId("sql-problem"), lines.length > 0);
  if (lines.length) show(byId("result-empty"), false);
}

/**
 * Return the question before a text changes every row of a table, null where it does not.
 * @param {string} text
 * @param {string} environment
 */
function warningOf(text, environment) {
  const found = unqualifiedIn(text);
  if (found.length === 0) return null;
  const total = statementsOf(text).length;
  const verbs = [...new Set(found.map(({ verb }) => verb))].sort();
  const which = found.length > 1 ? "These statements have" : total > 1 ? "This statement has" : "It has";
  const every = `${which} no WHERE: every row of the table is ${verbs.map((verb) => `${verb}d`).join(" or ")}, in ${environment}.`;
  const others = total > found.length ? ` It runs with the other statements of the text, ${total} in all.` : "";
  const title = { delete: "Delete every row?", update: "Update every row?" }[verbs.join()] ?? "Delete and update every row?";
  return { title, sentence: every + others, statements: found.map(({ from, to }) => text.slice(from, to)).join("\n\n") };
}
