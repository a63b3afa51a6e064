// @ts-check
/** Where the focus goes when what was pressed is gone with its row, or hidden: never to the top of the page. */

const FOCUSABLE = "a[href], button:not(:disabled), summary, input, select, textarea, [tabindex='0']";

/**
 * Return where something is, before it is pressed.
 * @param {HTMLElement} pressed
 */
export function placeOf(pressed) {
  // The items of a menu are rows of its own.
  const row = (pressed.closest("details.menu") ?? pressed).closest("li, tr");
  const list = row?.parentElement ?? null;
  return { list, at: row && list ? [...list.children].indexOf(row) : 0, action: pressed.dataset.action };
}

/**
 * Focus the row that is at its place now, or what is before it.
 * @param {HTMLElement} pressed
 * @param {ReturnType<typeof placeOf>} place
 * @param {HTMLElement} root the section of both
 */
export function keepFocus(pressed, { list, at, action }, root) {
  const { activeElement: active } = document;
  const isElsewhere = active !== null && active !== document.body && active !== pressed;
  if (isElsewhere || pressed.checkVisibility()) return;
  const inRow = visibleIn(list?.isConnected ? (list.children[at] ?? list.lastElementChild) : null);
  const same = inRow.find((each) => action !== undefined && each.dataset.action === action);
  const before = pressed.isConnected ? visibleIn(root).filter((each) => isBefore(each, pressed)).at(-1) : undefined;
  const next = same ?? inRow[0] ?? before ?? headingOf(root);
  next.focus({ preventScroll: next === before });
}

/** @param {Element | null} root */
function visibleIn(root) {
  const found = /** @type {HTMLElement[]} */ ([...(root?.querySelectorAll(FOCUSABLE) ?? [])]);
  return found.filter((each) => each.checkVisibility({ visibilityProperty: true }));
}

/**
 * @param {Node} one
 * @param {Node} other
 */
function isBefore(one, other) {
  return Boolean(one.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING);
}

/** @param {HTMLElement} root */
function headingOf(root) {
  const heading = root.querySelector("h1, h2, h3");
  const place = heading instanceof HTMLElement ? heading : root;
  place.tabIndex = -1;
  return place;
}
