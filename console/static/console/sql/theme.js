// @ts-check
/** How the editor looks: the console's colours, which follow light and dark. */

import { EditorView, HighlightStyle, syntaxHighlighting, tags } from "../../vendor/codemirror.js";

const theme = EditorView.theme({
  "&": { height: "100%", color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "14px" },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { caretColor: "var(--text)", padding: "8px 0" },
  ".cm-cursor": { borderLeftColor: "var(--text)", borderLeftWidth: "2px" },
  ".cm-gutters": { color: "var(--muted)", backgroundColor: "var(--surface)", border: "0" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 8px 0 12px" },
  ".cm-activeLine, .cm-activeLineGutter": { backgroundColor: "transparent" },
  "&.cm-focused .cm-activeLine, &.cm-focused .cm-activeLineGutter": { backgroundColor: "var(--sql-line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--sql-selection)",
  },
  ".cm-selectionMatch, .cm-searchMatch": { backgroundColor: "var(--sql-match)" },
  "&.cm-focused .cm-matchingBracket": { backgroundColor: "var(--sql-match)" },
  ".cm-tooltip": {
    color: "var(--text)",
    backgroundColor: "var(--surface)",
    border: "1px solid var(--line)",
    borderRadius: "6px",
    boxShadow: "0 8px 24px rgb(0 0 0 / 18%)",
    overflow: "hidden",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "13px", maxHeight: "240px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 8px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { color: "var(--on-accent)", backgroundColor: "var(--accent)" },
  ".cm-completionDetail": { marginLeft: "12px", color: "inherit", opacity: "0.8", fontStyle: "normal" },
  ".cm-panels": { color: "var(--text)", backgroundColor: "var(--sunken)", borderColor: "var(--line)" },
  ".cm-textfield": { color: "var(--text)", backgroundColor: "var(--surface)", borderColor: "var(--line-strong)" },
  ".cm-button": { color: "var(--text)", backgroundImage: "none", backgroundColor: "var(--surface)" },
  ".cm-run": { backgroundColor: "var(--accent-soft)", boxShadow: "0 2px var(--accent)" },
  ".cm-carriage-return": { color: "var(--muted)", opacity: "0.7" },
  ".cm-error": {
    textDecoration: "underline wavy var(--danger)",
    textDecorationSkipInk: "none",
    textUnderlineOffset: "4px",
    backgroundColor: "var(--danger-soft)",
  },
  ".cm-error-sentence": {
    // Without margins above and below, which the editor does not measure.
    margin: "0 12px 0 6px",
    padding: "6px 10px",
    borderLeft: "3px solid var(--danger)",
    borderRadius: "4px",
    color: "var(--danger)",
    backgroundColor: "var(--danger-soft)",
    fontFamily: "var(--sans)",
    whiteSpace: "pre-wrap",
  },
});

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.operatorKeyword, tags.modifier], color: "var(--sql-keyword)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--sql-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--sql-number)" },
  { tag: [tags.lineComment, tags.blockComment], color: "var(--muted)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--sql-type)" },
]);

export const appearance = [theme, syntaxHighlighting(colours)];
