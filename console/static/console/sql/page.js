// @ts-check
/** The SQL page: a text, and what the database answers. */

import { bindDrawer } from "../grid/drawer.js";
import { openPage } from "../frame/shell.js";
import { get } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, fill, show } from "../lib/dom.js";
import { Draft } from "../lib/drafts.js";
import { onClick } from "../lib/forms.js";
import { Cancelled, Problem, sentenceOf } from "../lib/problem.js";
import { tell } from "../lib/status.js";
import { bindTablist, choose } from "../lib/tablist.js";
import { Editor } from "./editor.js";
import { bindExports } from "./exports.js";
import { bindHistory, showHistory } from "./history.js";
import { Results } from "./results.js";
import { GivenUp, Run } from "./run.js";
import { SavedQueries } from "./saved.js";
import { showSchema } from "./schema_tree.js";

const FIRST = "-- Ctrl + Enter runs the selection, or everything.\nSELECT version();\n";
/** Where no answer came. */
const UNKNOWN = "It may have been carried out: look before you run it again.";
/** What a reader, whose statements write nothing, is refused: to write, and to call what may write. */
const NOT_READ_ONLY = ["25006", "42501"];
const NO_STATEMENT = "There is no statement at the cursor. Put the cursor into one, or select what you mean.";
/** Statements after which the schema may be another one. */
const CHANGES_SCHEMA = /^(?:CREATE|ALTER|DROP|COMMENT|SELECT INTO|REFRESH)/;

await openPage(async (who) => {
  bindDrawer();
  fill(byId("main"), { where: who.environment.name });
  const draft = new Draft(who, "sql");
  const results = new Results();
  const editor = new Editor(byId("editor"), {
    text: draft.read() ?? FIRST,
    onRun: () => void runChosen().catch(tell),
    onSave: () => saved?.ask(),
    // At once, and not when the page goes: signing out has removed the draft by then.
    onChange: (text) => draft.keep(text),
    onSelect: (isSelected) => {
      byId("run").textContent = isSelected ? "Run selection" : "Run";
    },
  });
  await editor.begin();
  const run = new Run((elapsedMs) => {
    byId("elapsed").textContent = `${(elapsedMs / 1000).toFixed(1)} s`;
  });
  let ran = "";
  let mayWrite = false;
  /** @type {SavedQueries | null} */
  let saved = null;

  async function runChosen() {
    const part = editor.chosen();
    if (run.isRunning || part.text.trim() === "") return;
    if (editor.isCut(part)) {
      await asked(part, "Run a part of a statement?", "The selection is not the whole statement. This is what runs:", "Run selection");
    }
    await start(part, {});
  }

  /** @param {"plan" | "analyze"} how */
  async function explain(how) {
    const part = editor.statement();
    if (run.isRunning) return;
    if (!part) {
      results.clear();
      editor.clearMark();
      showProblem(NO_STATEMENT);
    } else if (how === "plan") await start(part, { explain: true });
    else await measure(part);
  }

  /**
   * Run a statement as a reader and measure it; ask before it is run as the member that it may write as.
   * @param {import("./editor.js").Part} part
   */
  async function measure(part) {
    const { answer, note } = results;
    const refusal = await start(part, { explain: "analyze", read_only: true }, mayWrite ? NOT_READ_ONLY : []);
    if (!refusal) return;
    // Nothing has happened yet: what was shown stays until the answer to the question.
    if (answer) results.show(answer, note);
    const why = "It is not proved to write nothing. It is run, and what it writes stays written:";
    await asked(part, "Run this statement to measure it?", why, "Run it");
    await start(part, { explain: "analyze" });
  }

  /**
   * Ask before a text runs, which the question shows and the editor marks.
   * @param {import("./editor.js").Part} part
   * @param {string} title
   * @param {string} why
   * @param {string} action
   * @throws {Cancelled}
   */
  async function asked(part, title, why, action) {
    await editor.markRun(part);
    try {
      await confirm(title, why, action, part.text);
    } catch (error) {
      editor.clearMark();
      throw error;
    }
  }

  /**
   * @param {import("./editor.js").Part} part
   * @param {object} options of the request
   * @param {string[]} expected SQLSTATEs that are returned and not shown
   * @returns {Promise<Problem | null>} a refusal that was expected
   */
  async function start(part, options, expected = []) {
    if (run.isRunning || part.text.trim() === "") return null;
    editor.clearMark();
    editor.closeList();
    results.clear();
    showProblem("");
    if (part.text !== editor.text) editor.markRun(part).catch(tell);
    busy(true);
    results.say("Running …");
    try {
      const answer = await run.start({ query: part.text, ...options });
      ran = part.text;
      results.show(answer, "read_only" in options && mayWrite ? ", measured as a reader" : "");
      if (answer.results.some((result) => CHANGES_SCHEMA.test(result.command))) loadSchema().catch(tell);
    } catch (error) {
      results.say(endOf(error));
      if (error instanceof Problem && expected.includes(error.content.sqlstate)) return error;
      if (!(error instanceof Cancelled)) refuse(part, error);
    } finally {
      // The searched one has appeared in the meantime.
      editor.closeList();
      busy(false);
    }
    return null;
  }

  /**
   * @param {import("./editor.js").Part} part
   * @param {unknown} error
   */
  function refuse(part, error) {
    showProblem(failure(error));
    if (error instanceof Problem && error.content.position) editor.mark(part, error.content.position, error.message).catch(tell);
    if (!(error instanceof Problem)) throw error;
  }

  async function loadSchema() {
    const found = await get("/v1/sql/schema");
    editor.complete(found.tables);
    showSchema(found, (text) => editor.insert(text));
  }

  const permissions = (await get("/v1/permissions/effective")).permissions;
  mayWrite = permissions.sql?.includes("create") ?? false;
  saved = new SavedQueries(editor, mayWrite);
  const named = new URLSearchParams(location.search).get("saved");
  if (named) await saved.openById(named);
  const open = (/** @type {string} */ text) => editor.replace(text);
  bindHistory(open);
  bindExports(results, () => ran);
  onClick(byId("run"), () => runChosen().catch(tell));
  onClick(byId("explain"), () => explain("plan").catch(tell));
  onClick(byId("analyze"), () => explain("analyze").catch(tell));
  onClick(byId("cancel"), () => run.cancel());
  const tabs = byId("side-tabs");
  bindTablist(tabs, (tab) => {
    if (tab.id === "tab-history") showHistory(open).catch(tell);
    if (tab.id === "tab-saved") saved?.load().catch(tell);
  });
  choose(tabs, byId("tab-schema"));
  results.clear();
  busy(false);
  // The page is usable before the schema is there, which makes the database at the first visit.
  loadSchema().catch((error) => {
    byId("schema-none").textContent = sentenceOf(error);
    show(byId("schema-none"));
  });
});

/** @param {boolean} isBusy */
function busy(isBusy) {
  for (const id of ["run", "explain", "analyze"]) show(byId(id), !isBusy);
  show(byId("cancel"), isBusy);
  show(byId("elapsed"), isBusy);
}

/** @param {string} text */
function showProblem(text) {
  byId("sql-problem").textContent = text;
  show(byId("sql-problem"), text !== "");
  if (text) show(byId("result-empty"), false);
}

/** @param {unknown} error that ended a run */
function endOf(error) {
  if (error instanceof GivenUp) return `Not waited for any more. ${UNKNOWN}`;
  return error instanceof Cancelled ? "Cancelled." : "";
}

/** @param {unknown} error */
function failure(error) {
  if (!(error instanceof Problem)) return sentenceOf(error);
  if (error.code === "unreachable") return `${error.sentence} ${UNKNOWN}`;
  const { line, column, detail, title, hint, sqlstate, outcome } = error.content;
  const place = line ? `Line ${line}, column ${column}: ` : "";
  const said = [`${place}${detail || title}`, hint && `Hint: ${hint}`, outcome && `The transaction: ${outcome}.`];
  if (error.retryAfterS) said.push(error.sentence);
  return said.concat(sqlstate && `(${sqlstate})`).filter(Boolean).join(" ");
}
