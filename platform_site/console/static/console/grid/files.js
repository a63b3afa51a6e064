// @ts-check
/** Downloads that a page makes itself. */

/**
 * Have the browser save a text or a body under a name.
 * @param {string} name
 * @param {Blob | string} content
 * @param {string} [type]
 */
export function download(name, content, type = "text/plain") {
  const blob = typeof content === "string" ? new Blob([content], { type }) : content;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
