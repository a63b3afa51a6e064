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
/** Statements that only read, as far as their first word says. */
const READS = /^\s*(?:--[^\n]*\n|\/\*[\s\S]*?\*\/|\s)*(?:select|values|table)\b/i;
/** Statements after which the schema may be another one. */
const CHANGES_SCHEMA = /^(?:CREATE|ALTER|DROP|COMMENT|SELECT INTO|REFRESH)/;

await openPage(async (who) => {
  bindDrawer();
  fill(byId("main"), { where: who.environment.name });
  const draft = new Draft(who, "sql");
  const results = new Results();
  const editor = new Editor(byId("editor"), {
    text: draft.read() ?? FIRST,
    onRun: () => runChosen(),
    onSave: () => saved?.ask(),
    // At once, and not when the page goes: signing out has removed the draft by then.
    onChange: (text) => draft.keep(text),
  });
  await editor.begin();
  const run = new Run((elapsedMs) => {
    byId("elapsed").textContent = `${(elapsedMs / 1000).toFixed(1)} s`;
  });
  let ran = "";
  /** @type {SavedQueries | null} */
  let saved = null;

  const runChosen = () => start(editor.chosen(), {});

  /** @param {"plan" | "analyze"} how */
  async function explain(how) {
    const part = await editor.statement();
    if (how === "analyze" && !READS.test(part.text)) {
      await confirm("Run this statement to measure it?", "The statement is run, and what it writes stays written.", "Run it");
    }
    await start(part, { explain: how === "plan" ? true : "analyze" });
  }

  /**
   * @param {import("./editor.js").Part} part
   * @param {object} options of the request
   */
  async function start(part, options) {
    if (run.isRunning || part.text.trim() === "") return;
    editor.clearMark();
    editor.closeList();
    results.clear();
    showProblem("");
    busy(true);
    results.say("Running …");
    try {
      const answer = await run.start({ query: part.text, ...options });
      ran = part.text;
      results.show(answer);
      if (answer.results.some((result) => CHANGES_SCHEMA.test(result.command))) loadSchema().catch(tell);
    } catch (error) {
      results.say(endOf(error));
      if (!(error instanceof Cancelled)) refuse(part, error);
    } finally {
      // The searched one has appeared in the meantime.
      editor.closeList();
      busy(false);
    }
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
  saved = new SavedQueries(editor, permissions.sql?.includes("create") ?? false);
  const named = new URLSearchParams(location.search).get("saved");
  if (named) await saved.openById(named);
  const open = (/** @type {string} */ text) => editor.replace(text);
  bindHistory(open);
  bindExports(results, () => ran);
  onClick(byId("run"), runChosen);
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
