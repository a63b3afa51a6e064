// @ts-check
/** Files and folders that are dropped onto the page, or chosen. */

import { Problem } from "../lib/problem.js";

/**
 * path: below the folder that is open.
 * @typedef {{file: File, path: string}} FoundFile
 */

/**
 * @param {HTMLElement} area
 * @param {(files: Promise<FoundFile[]>) => void} taken
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
  area.addEventListener("drop", (event) => {
    turn(0);
    if (!isFiles(event)) return;
    // Taken before the first pause: after it the browser has emptied the list.
    const items = [...(event.dataTransfer?.items ?? [])].map(foundIn);
    taken(Promise.all(items).then((found) => found.flat(), unreadable));
  });
}

/**
 * Return what was chosen, and forget it: the same choice again is a new one.
 * @param {HTMLInputElement} picker of files, or of a folder
 * @returns {FoundFile[]}
 */
export function inFolders(picker) {
  const files = [...(picker.files ?? [])];
  picker.value = "";
  return files.map((file) => ({ file, path: file.webkitRelativePath || file.name }));
}

/** @returns {never} */
function unreadable() {
  throw new Problem(0, { title: "The browser could not read all of the files. Nothing is uploaded." });
}

/**
 * Return the files of a dropped item. What is no file of the disk, such as a picture of another page,
 * has no entry.
 * @param {DataTransferItem} item
 * @returns {Promise<FoundFile[]>}
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
 * @returns {Promise<FoundFile[]>}
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
