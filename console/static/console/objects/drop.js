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
    // Taken before the first pause: after it the browser has emptied the list.
    const items = [...(event.dataTransfer?.items ?? [])].map(foundIn);
    const files = (await Promise.all(items)).flat();
    if (files.length) taken(files);
  });
}

/**
 * Return the files of a dropped item. What is no file of the disk, such as a picture of another page,
 * has no entry.
 * @param {DataTransferItem} item
 * @returns {Promise<Dropped[]>}
 */
async function foundIn(item) {
  const [entry, file] = [item.webkitGetAsEntry(), item.getAsFile()];
  if (entry) return filesOf(entry, "");
  return file ? [{ file, path: file.name }] : [];
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
