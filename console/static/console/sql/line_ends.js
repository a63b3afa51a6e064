// @ts-check
/**
 * The editor's text is what was put in, byte for byte. A line ends with LF; a CR is a character of the
 * text, and shown. Where it is a line's last one, the cursor does not come between it and the LF: what
 * is typed there would follow a line break of PostgreSQL's on the same line of the editor.
 */

import { Decoration, EditorSelection, EditorState, EditorView, highlightSpecialChars } from "../../vendor/codemirror.js";
import { element } from "../lib/dom.js";

const CR = 13;

const atomic = EditorView.atomicRanges.of((/** @type {any} */ view) => {
  const { doc } = view.state;
  const ranges = [];
  for (const { from, to } of view.visibleRanges) {
    for (let line = doc.lineAt(from); ; line = doc.line(line.number + 1)) {
      if (isSplit(doc, line.to)) ranges.push(Decoration.mark({}).range(line.to - 1, line.to + 1));
      if (line.to >= to || line.number === doc.lines) break;
    }
  }
  return Decoration.set(ranges);
});

/** Where a line's end is the aim, such as with the key End. */
const beforeLineEnd = EditorState.transactionFilter.of((/** @type {any} */ transaction) => {
  const { newDoc, newSelection } = transaction;
  const isBetween = (/** @type {any} */ range) => range.empty && isSplit(newDoc, range.head);
  if (!newSelection.ranges.some(isBetween)) return transaction;
  const ranges = newSelection.ranges.map((/** @type {any} */ range) => (isBetween(range) ? EditorSelection.cursor(range.head - 1) : range));
  return [transaction, { selection: EditorSelection.create(ranges, newSelection.mainIndex), sequential: true }];
});

/** True if a place is between CR and LF. */
function isSplit(/** @type {any} */ doc, /** @type {number} */ at) {
  return at > 0 && at < doc.length && doc.sliceString(at - 1, at + 1) === "\r\n";
}

/**
 * @param {number} code
 * @param {string} description
 * @param {string} placeholder
 */
function shown(code, description, placeholder) {
  // Not every font has the placeholder of CR.
  const mark = element("span", code === CR ? "\\r" : placeholder);
  mark.className = code === CR ? "cm-carriage-return" : "cm-specialChar";
  mark.title = description;
  mark.setAttribute("aria-label", description);
  return mark;
}

export const lineEnds = [EditorState.lineSeparator.of("\n"), highlightSpecialChars({ render: shown }), atomic, beforeLineEnd];
