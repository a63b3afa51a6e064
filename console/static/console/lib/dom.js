// @ts-check
/** The document: elements by id, templates, slots. Text goes in as text, never as markup. */

/**
 * Return an element that the page must have.
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 * @returns {T}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no #${id}.`);
  return /** @type {T} */ (found);
}

/**
 * Return the first element below that matches.
 * @template {HTMLElement} [T=HTMLElement]
 * @param {ParentNode} root
 * @param {string} selector
 * @returns {T}
 */
export function within(root, selector) {
  const found = root.querySelector(selector);
  if (!found) throw new Error(`There is no ${selector}.`);
  return /** @type {T} */ (found);
}

/**
 * Return a copy of a template's only element.
 * @param {string} id
 */
export function stamp(id) {
  const template = /** @type {HTMLTemplateElement} */ (byId(id));
  return /** @type {HTMLElement} */ (template.content.firstElementChild?.cloneNode(true));
}

/**
 * Fill the slots of an element.
 * @param {ParentNode} root
 * @param {Record<string, string | number>} texts by the slots' names
 */
export function fill(root, texts) {
  for (const [name, text] of Object.entries(texts)) {
    within(root, `[data-slot="${name}"]`).textContent = String(text);
  }
}

/**
 * @param {HTMLElement} element
 * @param {boolean} isShown
 */
export function show(element, isShown = true) {
  element.hidden = !isShown;
}

/**
 * Return a new element with a text.
 * @param {string} tag
 * @param {string} [text]
 */
export function element(tag, text = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  return made;
}

/**
 * Return an option whose value is a text byte for byte: without the attribute it would be the text with
 * its blanks cut and joined. Where those matter they are shown.
 * @param {string} value
 */
export function optionOf(value) {
  return new Option(value.replace(/^ +| +$|(?<= ) | (?= )/g, (blanks) => "␣".repeat(blanks.length)), value);
}

/**
 * Show one of several panels, and put the focus on its heading.
 * @param {HTMLElement} panel
 */
export function turnTo(panel) {
  for (const other of panel.parentElement?.children ?? []) {
    if (other instanceof HTMLElement && other.dataset.panel !== undefined) show(other, other === panel);
  }
  const heading = panel.querySelector("h1, h2, h3");
  if (heading instanceof HTMLElement) {
    heading.tabIndex = -1;
    heading.focus();
  }
}
