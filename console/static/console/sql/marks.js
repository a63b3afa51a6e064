// @ts-check
/** What is marked in the editor: the text that runs, PostgreSQL's error and its sentence below the line. */

import { Decoration, EditorView, StateEffect, StateField, WidgetType } from "../../vendor/codemirror.js";
import { element } from "../lib/dom.js";

const RUN = "cm-run";
const setRun = StateEffect.define();
const addError = StateEffect.define();
export const clearMark = StateEffect.define();
/** What is marked: a word, a number, a quoted name, else one character. */
const WORD = /^(?:"(?:[^"]|"")*"|'(?:[^']|'')*'|[\p{L}\p{N}_$.]+)/u;

class Sentence extends WidgetType {
  /** @param {string} text */
  constructor(text) {
    super();
    this.text = text;
  }

  /** @param {Sentence} other */
  eq(other) {
    return other.text === this.text;
  }

  toDOM() {
    const line = element("div", this.text);
    line.className = "cm-error-sentence";
    return line;
  }
}

export const marks = StateField.define({
  create: () => Decoration.none,
  update(/** @type {any} */ set, /** @type {any} */ transaction) {
    // What is being corrected is no longer pointed at, nor is it what ran.
    if (transaction.docChanged) return Decoration.none;
    for (const effect of transaction.effects) {
      if (effect.is(clearMark)) set = Decoration.none;
      if (effect.is(addError)) set = set.update({ add: effect.value, sort: true });
      if (effect.is(setRun)) set = set.update({ add: [effect.value], sort: true, filter: isError });
    }
    return set;
  },
  provide: (/** @type {any} */ field) => EditorView.decorations.from(field),
});

/**
 * Return the effects that mark the text that runs, and bring its beginning into sight.
 * @param {number} from
 * @param {number} to
 */
export function markRun(from, to) {
  return [setRun.of(Decoration.mark({ class: RUN }).range(from, to)), EditorView.scrollIntoView(from, { y: "center" })];
}

/**
 * @param {number} _from
 * @param {number} _to
 * @param {any} mark
 */
function isError(_from, _to, mark) {
  return mark.spec.class !== RUN;
}

/**
 * Return the effects that mark what is at a position, and bring it into sight.
 * @param {any} state
 * @param {number} at
 * @param {string} sentence
 */
export function markAt(state, at, sentence) {
  const { length } = state.doc;
  // An error at the end of the text is about what is missing there.
  const from = Math.min(at, Math.max(0, length - 1));
  const line = state.doc.lineAt(from);
  const word = WORD.exec(state.sliceDoc(from, line.to))?.[0] ?? "";
  const to = Math.min(length, from + Math.max(1, word.length));
  const below = Decoration.widget({ widget: new Sentence(sentence), block: true, side: 1 }).range(line.to);
  const added = from < to && from < line.to ? [Decoration.mark({ class: "cm-error" }).range(from, to), below] : [below];
  return [addError.of(added), EditorView.scrollIntoView(from)];
}
