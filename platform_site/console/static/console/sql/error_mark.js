// @ts-check
/** PostgreSQL's error in the editor: the word it is about, and the sentence below its line. */

import { Decoration, EditorView, StateEffect, StateField, WidgetType } from "../../vendor/codemirror.js";
import { element } from "../lib/dom.js";

const setMark = StateEffect.define();
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

export const errorMark = StateField.define({
  create: () => Decoration.none,
  update(/** @type {any} */ marks, /** @type {any} */ transaction) {
    // What is being corrected is no longer pointed at.
    if (transaction.docChanged) return Decoration.none;
    for (const effect of transaction.effects) {
      if (effect.is(clearMark)) return Decoration.none;
      if (effect.is(setMark)) return effect.value;
    }
    return marks;
  },
  provide: (/** @type {any} */ field) => EditorView.decorations.from(field),
});

/**
 * Return the effects that mark what stands at a position, and bring it into sight.
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
  const marks = from < to && from < line.to ? [Decoration.mark({ class: "cm-error" }).range(from, to), below] : [below];
  return [setMark.of(Decoration.set(marks, true)), EditorView.scrollIntoView(from)];
}
