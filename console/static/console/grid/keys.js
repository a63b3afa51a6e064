// @ts-check
/** What a key means in a grid. */

/** @typedef {{row: number, column: number}} Place */
/** @typedef {{rows: number, columns: number, page: number}} Size */

/**
 * Return what a key does, undefined for one that moves or does nothing.
 * @param {KeyboardEvent} event
 * @returns {"open" | "copy" | "all" | "mark" | "wider" | "narrower" | undefined}
 */
export function keyed(event) {
  const isCommand = event.ctrlKey || event.metaKey;
  if (event.key === "Enter" || event.key === "F2") return "open";
  if (event.key === "c" && isCommand) return "copy";
  if (event.key === "a" && isCommand) return "all";
  if (event.key === " ") return "mark";
  if (event.altKey && event.key === "ArrowRight") return "wider";
  if (event.altKey && event.key === "ArrowLeft") return "narrower";
  return undefined;
}

/**
 * Return where a key leads, null if it does not move.
 * @param {KeyboardEvent} event
 * @param {Place} from
 * @param {Size} size
 * @returns {Place | null}
 */
export function moved(event, from, size) {
  const isCommand = event.ctrlKey || event.metaKey;
  const last = { row: size.rows - 1, column: size.columns - 1 };
  const to = target(event.key, isCommand, from, last, size.page);
  return to && { row: within(to.row, -1, last.row), column: within(to.column, 0, last.column) };
}

/**
 * @param {string} key
 * @param {boolean} isCommand
 * @param {Place} from
 * @param {Place} last
 * @param {number} page
 * @returns {Place | null}
 */
function target(key, isCommand, { row, column }, last, page) {
  switch (key) {
    case "ArrowUp":
      return { row: isCommand ? 0 : row - 1, column };
    case "ArrowDown":
      return { row: isCommand ? last.row : row + 1, column };
    case "ArrowLeft":
      return { row, column: isCommand ? 0 : column - 1 };
    case "ArrowRight":
      return { row, column: isCommand ? last.column : column + 1 };
    case "PageUp":
      return { row: Math.max(0, row - page), column };
    case "PageDown":
      return { row: row + page, column };
    case "Home":
      return isCommand ? { row: 0, column: 0 } : { row, column: 0 };
    case "End":
      return isCommand ? last : { row, column: last.column };
    default:
      return null;
  }
}

/**
 * @param {number} value
 * @param {number} least
 * @param {number} most
 */
function within(value, least, most) {
  return Math.max(least, Math.min(most, value));
}
