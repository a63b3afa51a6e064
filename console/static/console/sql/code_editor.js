// @ts-check
/** The editor proper: keys, the text, an error at its place. */

import {
  Compartment,
  EditorState,
  EditorView,
  Prec,
  acceptCompletion,
  autocompletion,
  bracketMatching,
  closeBrackets,
  closeBracketsKeymap,
  closeCompletion,
  completionKeymap,
  defaultKeymap,
  drawSelection,
  highlightActiveLine,
  highlightActiveLineGutter,
  highlightSelectionMatches,
  history,
  historyKeymap,
  indentOnInput,
  keymap,
  lineNumbers,
  search,
  searchKeymap,
} from "../../vendor/codemirror.js";
import { languageOf } from "./completion.js";
import { lineEnds } from "./line_ends.js";
import { clearMark, markAt, marks, markRun } from "./marks.js";
import { appearance } from "./theme.js";

/** @typedef {import("./editor.js").Part} Part */

export class CodeEditor {
  /**
   * @param {HTMLElement} place what it has inside is no longer shown
   * @param {HTMLTextAreaElement} area whose focus the editor takes over
   * @param {import("./editor.js").Options & {anchor: number, head: number}} options
   */
  constructor(place, area, { text, anchor, head, onRun, onRunStatement, onSave, onChange, onSelect }) {
    const hadFocus = document.activeElement === area;
    this.language = new Compartment();
    // In a shadow root CodeMirror's styles are constructed sheets, which the page's policy allows.
    const root = place.attachShadow({ mode: "open" });
    const doing = (/** @type {() => void} */ action) => () => {
      action();
      return true;
    };
    const listener = EditorView.updateListener.of((/** @type {any} */ update) => {
      if (update.docChanged) onChange(update.state.doc.toString());
      if (update.docChanged || update.selectionSet) onSelect(this.hasSelection);
    });
    const state = EditorState.create({
      doc: text,
      selection: { anchor, head },
      extensions: [
        // Before the keys of the editor itself, for which Ctrl-Enter is a new line.
        Prec.highest(
          keymap.of([
            { key: "Mod-Enter", run: doing(onRun), shift: doing(onRunStatement) },
            { key: "Mod-s", run: doing(onSave) },
            { key: "Tab", run: acceptFirst },
          ]),
        ),
        heldDown,
        features(),
        this.language.of(languageOf([])),
        marks,
        lineEnds,
        appearance,
        listener,
        typingOverSelection,
        EditorView.contentAttributes.of({ "aria-label": "SQL", autocapitalize: "none" }),
      ],
    });
    this.view = new EditorView({ state, parent: root, root, scrollTo: EditorView.scrollIntoView(head) });
    if (hadFocus) this.view.focus();
  }

  get text() {
    return this.view.state.doc.toString();
  }

  /**
   * Replace the whole text; undo brings it back.
   * @param {string} text
   */
  replace(text) {
    const { view } = this;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text }, selection: { anchor: text.length } });
    view.focus();
  }

  /**
   * Put a text where the cursor is.
   * @param {string} text
   */
  insert(text) {
    this.view.dispatch(this.view.state.replaceSelection(text));
    this.view.focus();
  }

  /** The selection's edges, the first one first. */
  get selected() {
    const { from, to } = this.view.state.selection.main;
    return [from, to];
  }

  get hasSelection() {
    const { from, to } = this.view.state.selection.main;
    return this.view.state.sliceDoc(from, to).trim() !== "";
  }

  /** Mark what runs. @param {Part} part */
  markRun({ from, text }) {
    const to = from + text.length;
    if (this.view.state.sliceDoc(from, to) === text) this.view.dispatch({ effects: markRun(from, to) });
  }

  /**
   * Mark an error in a text that was run, with its sentence below the line.
   * @param {Part} part
   * @param {number} at in it
   * @param {string} sentence
   */
  mark({ from, text }, at, sentence) {
    // The text may have been changed in the meantime.
    if (this.view.state.sliceDoc(from, from + text.length) !== text) return;
    this.view.dispatch({ effects: markAt(this.view.state, from + at, sentence) });
  }

  /** Close the list of completions, which may lie over the results. */
  closeList() {
    closeCompletion(this.view);
  }

  clearMark() {
    this.view.dispatch({ effects: clearMark.of(null) });
  }

  /** @param {any[]} tables as /v1/sql/schema lists them */
  complete(tables) {
    this.view.dispatch({ effects: this.language.reconfigure(languageOf(tables)) });
  }
}

const selectNext = completionKeymap.find((/** @type {any} */ binding) => binding.key === "ArrowDown").run;

/** Accept the completion that was chosen, else the first one. @param {any} view */
function acceptFirst(view) {
  return acceptCompletion(view) || (selectNext(view) && acceptCompletion(view));
}

/** A key that is held down runs the text once. */
const heldDown = Prec.highest(
  EditorView.domEventHandlers({
    keydown: (/** @type {KeyboardEvent} */ event) => event.repeat && event.key === "Enter" && (event.ctrlKey || event.metaKey),
  }),
);

/**
 * Chromium itself, when a selection is typed over, wraps the text in a style attribute to keep the
 * look of what was there; the page's policy blocks and reports that. The editor does it instead.
 */
const typingOverSelection = EditorView.domEventHandlers({
  beforeinput(/** @type {InputEvent} */ event, /** @type {any} */ view) {
    const { data, inputType } = event;
    const { from, to, empty } = view.state.selection.main;
    if (inputType !== "insertText" || !data || empty || view.composing) return false;
    const spec = { ...view.state.replaceSelection(data), userEvent: "input.type", scrollIntoView: true };
    const handlers = view.state.facet(EditorView.inputHandler);
    const isHandled = handlers.some((/** @type {any} */ handle) => handle(view, from, to, data, () => view.state.update(spec)));
    if (!isHandled) view.dispatch(spec);
    event.preventDefault();
    return true;
  },
});

function features() {
  return [
    lineNumbers(),
    highlightActiveLineGutter(),
    history(),
    drawSelection(),
    indentOnInput(),
    bracketMatching(),
    closeBrackets(),
    // The list opens by itself, so that Enter accepts only what an arrow key has chosen.
    autocompletion({ selectOnOpen: false }),
    highlightActiveLine(),
    highlightSelectionMatches(),
    search({ top: true }),
    EditorView.lineWrapping,
    // Tab leaves the editor unless a completion is open: keyboard users can leave it.
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...completionKeymap]),
  ];
}
