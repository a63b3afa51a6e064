// @ts-check
/** Files and folders that are dropped onto the page. */

/** @typedef {{file: File, path: string}} Dropped */

/**
 * @param {HTMLElement} area
 * @param {(files: Dropped[]) => void} taken
 */
export function bindDrop(area, taken) {
  // Elements inside of the area send events of their own.
  let depth = 0;
  const isFiles = (/** @type {DragEvent} */ event) => event.dataTransfer?.types.includes("Files") ?? false;
  const turn = (/** @type {number} */ to) => {
    depth = to;
    area.classList.toggle("dragged", depth > 0);
  };
  area.addEventListener("dragenter", (event) => isFiles(event) && turn(depth + 1));
  area.addEventListener("dragleave", (event) => isFiles(event) && turn(Math.max(0, depth - 1)));
  // A file that misses the area must not replace the page.
  for (const name of /** @type {const} */ (["dragover", "drop"])) {
    document.addEventListener(name, (event) => isFiles(event) && event.preventDefault());
  }
  area.addEventListener("drop", async (event) => {
    turn(0);
    const items = [...(event.dataTransfer?.items ?? [])];
    const entries = items.map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
    const files = (await Promise.all(entries.map((entry) => filesOf(entry, "")))).flat();
    if (files.length) taken(files);
  });
}

/**
 * Return the files of an entry, with all that are in its folders.
 * @param {FileSystemEntry} entry
 * @param {string} path of the folder that it is in
 * @returns {Promise<Dropped[]>}
 */
async function filesOf(entry, path) {
  if (entry.isFile) {
    const file = await new Promise((done, failed) => /** @type {FileSystemFileEntry} */ (entry).file(done, failed));
    return [{ file, path: path + entry.name }];
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  const found = [];
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((done, failed) => reader.readEntries(done, failed));
    if (!some.length) break;
    found.push(...some);
  }
  return (await Promise.all(found.map((each) => filesOf(each, `${path}${entry.name}/`)))).flat();
}
