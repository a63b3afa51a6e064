// @ts-check
/**
 * A text area whose text keeps its line ends. A text area's value has LF for each CR LF and CR (HTML,
 * "API value"), so the text is kept beside it and follows what is typed.
 */

const END = /\r\n|\r|\n/;

/** @type {WeakMap<Element, ExactText>} */
const texts = new WeakMap();

/**
 * Return the value of a field, byte for byte.
 * @param {HTMLTextAreaElement | HTMLSelectElement | HTMLInputElement} field
 */
export function exactValue(field) {
  return texts.get(field)?.text ?? field.value;
}

/**
 * @param {HTMLTextAreaElement | HTMLSelectElement | HTMLInputElement} field
 * @param {string} text
 */
export function setExactValue(field, text) {
  const kept = texts.get(field);
  if (kept) kept.set(text);
  else field.value = text;
}

/**
 * Return where a place of a text area's value is in its exact text.
 * @param {string} text
 * @param {number} offset in the value
 */
export function exactOffset(text, offset) {
  if (!text.includes("\r\n")) return offset;
  let at = 0;
  for (let left = offset; left > 0; left -= 1) at += text.startsWith("\r\n", at) ? 2 : 1;
  return at;
}

/** @param {string} text */
function valueOf(text) {
  return text.replace(/\r\n?/g, "\n");
}

export class ExactText {
  #text = "";
  /** What an undo may come back to. */
  #original = "";
  /** The area's value that belongs to the text. */
  #value = "";
  /** What was pasted or dropped, until the area has it. */
  #pasted = "";

  /**
   * @param {HTMLTextAreaElement} area
   * @param {string} text
   */
  constructor(area, text) {
    this.area = area;
    texts.set(area, this);
    this.set(text);
    area.addEventListener("input", () => this.#follow());
    area.addEventListener("paste", (event) => this.#take(event.clipboardData));
    area.addEventListener("drop", (event) => this.#take(event.dataTransfer));
    for (const name of /** @type {const} */ (["copy", "cut"])) area.addEventListener(name, (event) => this.#give(event));
  }

  /** @param {string} text */
  set(text) {
    this.area.value = text;
    this.#text = this.#original = text;
    this.#value = this.area.value;
  }

  get text() {
    this.#follow();
    return this.#text;
  }

  /**
   * Put a text in the place of a part of the exact text.
   * @param {string} inserted
   * @param {number} from in the area's value
   * @param {number} to
   */
  splice(inserted, from, to) {
    const { text } = this;
    const [start, end] = [from, to].map((offset) => exactOffset(text, offset));
    this.area.setRangeText(inserted, from, to, "end");
    this.#text = text.slice(0, start) + inserted + text.slice(end);
    this.#value = this.area.value;
  }

  /** @param {DataTransfer | null} data */
  #take(data) {
    this.#pasted = data?.getData("text/plain") ?? "";
  }

  /** Copy the exact text. @param {ClipboardEvent} event */
  #give(event) {
    const { area, text } = this;
    const [start, end] = [area.selectionStart, area.selectionEnd].map((offset) => exactOffset(text, offset));
    const copied = text.slice(start, end);
    if (!copied.includes("\r")) return;
    event.clipboardData?.setData("text/plain", copied);
    event.preventDefault();
    // Undo brings it back, unlike after an assignment.
    if (event.type === "cut") document.execCommand("delete");
  }

  /** Change the text as the area's value was changed. */
  #follow() {
    const [before, now] = [this.#value, this.area.value];
    if (now === before) return;
    const change = this.#pastedIn(before, now) ?? this.#typedIn(before, now);
    const [start, end] = [change.from, change.to].map((offset) => exactOffset(this.#text, offset));
    const text = this.#text.slice(0, start) + change.inserted + this.#text.slice(end);
    this.#text = now === valueOf(this.#original) ? this.#original : text;
    this.#value = now;
    this.#pasted = "";
  }

  /**
   * Return what was pasted, if that is how the value was changed: the cursor is behind it.
   * @param {string} before
   * @param {string} now
   */
  #pastedIn(before, now) {
    const end = this.area.selectionEnd;
    const from = end - valueOf(this.#pasted).length;
    const to = before.length - (now.length - end);
    if (!this.#pasted || from < 0 || to < from || now.slice(from, end) !== valueOf(this.#pasted)) return null;
    const isElsewhereSame = before.slice(0, from) === now.slice(0, from) && before.slice(to) === now.slice(end);
    return isElsewhereSame ? { from, to, inserted: this.#pasted } : null;
  }

  /**
   * Return what differs; its lines end as those of the text do.
   * @param {string} before
   * @param {string} now
   */
  #typedIn(before, now) {
    const most = Math.min(before.length, now.length);
    let from = 0;
    while (from < most && before[from] === now[from]) from += 1;
    let after = 0;
    while (after < most - from && before[before.length - 1 - after] === now[now.length - 1 - after]) after += 1;
    const end = END.exec(this.#text)?.[0] ?? END.exec(this.#original)?.[0] ?? "\n";
    return { from, to: before.length - after, inserted: now.slice(from, now.length - after).replaceAll("\n", end) };
  }
}
