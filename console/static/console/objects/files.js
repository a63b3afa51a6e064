// @ts-check
/** The objects of a bucket, as folders and files. */

import { get } from "../lib/api.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { bytes, count } from "../lib/format.js";
import { attempt, onPress, onSubmit } from "../lib/forms.js";
import { deleteAll, deleteKeys } from "./deletion.js";
import { openDetails } from "./details.js";
import { bindDrop } from "./drop.js";
import { address, go, here, nameOf, objectsOf } from "./place.js";
import { purge } from "./purge.js";
import { startUploads } from "./uploads.js";

const PAGE = 200;

/** @type {Map<string, boolean>} chosen keys; true for a folder */
const chosen = new Map();
/** @type {Set<string>} keys that are shown */
const shown = new Set();
let mayWrite = false;
/** @type {string | null} */
let next = null;
// A slow answer must not fill the folder that was opened after it was asked for.
let asked = 0;

/** @param {boolean} may */
export function bindFiles(may) {
  mayWrite = may;
  const section = byId("files");
  const picker = /** @type {HTMLInputElement} */ (byId("upload-files"));
  byId("upload").addEventListener("click", () => picker.click());
  picker.addEventListener("change", () => {
    const files = [...(picker.files ?? [])].map((file) => ({ file, path: file.name }));
    picker.value = "";
    void attempt(section, () => upload(files));
  });
  if (may) bindDrop(byId("drop"), (files) => void attempt(section, () => upload(files)));
  onPress(byId("files-more"), section, () => showPage(next ?? ""));
  onPress(byId("purge-folder"), section, () => {
    const { bucket, prefix } = here();
    return purge({ prefix: `${bucket}/${prefix}` }, prefix ? nameOf(prefix) : `all of ${bucket}`);
  });
  byId("filter").addEventListener("input", () => void attempt(section, () => showFolder(false)));
  byId("filter-form").addEventListener("submit", (event) => event.preventDefault());
  bindFolder();
  bindSelection(section);
}

export async function showFiles() {
  const { bucket, prefix } = here();
  const filter = /** @type {HTMLInputElement} */ (byId("filter"));
  filter.value = "";
  byId("to-settings").setAttribute("href", address({ bucket, view: "settings" }));
  fill(byId("drop"), { into: `${bucket}/${prefix}` });
  showCrumbs(bucket, prefix);
  await showFolder(true);
}

/** @param {boolean} isNew else what is shown stays until the answer is there */
async function showFolder(isNew) {
  choose();
  if (isNew) clearRows();
  await showPage("");
}

/** @param {string} after empty for the first page */
async function showPage(after) {
  const { bucket, prefix } = here();
  const filter = /** @type {HTMLInputElement} */ (byId("filter")).value;
  const query = new URLSearchParams({ prefix: prefix + filter, delimiter: "/", limit: String(PAGE), after });
  asked += 1;
  const mine = asked;
  const page = await get(`${objectsOf(bucket)}?${query}`);
  if (mine !== asked) return;
  if (!after) clearRows();
  const rows = [
    ...page.prefixes.map((/** @type {string} */ key) => folderRow(bucket, key)),
    // An object with the folder's own name marks an empty folder.
    ...page.objects.filter((/** @type {any} */ each) => each.key !== prefix).map(fileRow),
  ];
  byId("file-rows").append(...rows);
  next = page.next_after;
  show(byId("files-more"), next !== null);
  const isEmpty = shown.size === 0;
  fill(byId("drop"), { empty: filter ? "No name begins with that" : "This folder is empty" });
  show(byId("no-files"), isEmpty);
  show(byId("file-table"), !isEmpty);
}

function clearRows() {
  shown.clear();
  byId("file-rows").replaceChildren();
}

/**
 * @param {string} bucket
 * @param {string} prefix
 */
function showCrumbs(bucket, prefix) {
  const folders = prefix.split("/").slice(0, -1);
  const places = [
    { name: "Buckets", to: "?" },
    { name: bucket, to: address({ bucket }) },
    ...folders.map((name, index) => ({
      name: name || "/",
      to: address({ bucket, prefix: `${folders.slice(0, index + 1).join("/")}/` }),
    })),
  ];
  const items = places.map(({ name, to }, index) => {
    const item = element("li");
    const link = element("a", name);
    link.setAttribute("href", to);
    if (index === places.length - 1) link.setAttribute("aria-current", "page");
    item.append(link);
    return item;
  });
  byId("crumbs").replaceChildren(...items);
}

/**
 * @param {string} bucket
 * @param {string} prefix
 */
function folderRow(bucket, prefix) {
  const row = rowOf(prefix, true, { size: "", changed: "" });
  row.classList.add("folder");
  within(row, ".name").addEventListener("click", () => go(address({ bucket, prefix })));
  return row;
}

/** @param {any} found */
function fileRow(found) {
  const changed = new Date(found.last_modified).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" });
  const row = rowOf(found.key, false, { size: bytes(found.size), changed });
  within(row, ".name").addEventListener("click", () => {
    void openDetails(here().bucket, found.key, { changed: () => showFolder(false) });
  });
  return row;
}

/**
 * @param {string} key
 * @param {boolean} isFolder
 * @param {{size: string, changed: string}} texts
 */
function rowOf(key, isFolder, texts) {
  const row = stamp("file-row");
  const name = isFolder ? `${nameOf(key)}/` : nameOf(key);
  fill(row, { name, ...texts });
  shown.add(key);
  const tick = /** @type {HTMLInputElement} */ (within(row, "input"));
  tick.setAttribute("aria-label", `Select ${name}`);
  show(within(row, ".tick"), mayWrite);
  tick.addEventListener("change", () => {
    if (tick.checked) chosen.set(key, isFolder);
    else chosen.delete(key);
    showSelection();
  });
  return row;
}

// --- what is chosen ---------------------------------------------------------------------------

/** @param {HTMLElement} section */
function bindSelection(section) {
  const all = /** @type {HTMLInputElement} */ (byId("select-all"));
  all.addEventListener("change", () => {
    // Each click shows again what is chosen, and with it this box.
    const wanted = all.checked;
    for (const tick of ticks()) {
      if (tick.checked !== wanted) tick.click();
    }
  });
  byId("select-none").addEventListener("click", choose);
  onPress(byId("delete-selected"), section, async () => {
    const folders = [...chosen].filter(([, isFolder]) => isFolder).map(([key]) => key);
    const keys = [...chosen].filter(([, isFolder]) => !isFolder).map(([key]) => key);
    const { bucket } = here();
    if (folders.length) await deleteAll(bucket, folders, keys);
    else await deleteKeys(bucket, keys);
    await showFolder(false);
  });
}

/** Choose nothing. */
function choose() {
  chosen.clear();
  for (const tick of ticks()) tick.checked = false;
  showSelection();
}

function showSelection() {
  show(byId("selection"), chosen.size > 0);
  fill(byId("selection"), { selected: `${count(chosen.size, "item")} selected` });
  const all = /** @type {HTMLInputElement} */ (byId("select-all"));
  all.checked = chosen.size > 0 && chosen.size === shown.size;
  all.indeterminate = chosen.size > 0 && !all.checked;
}

function ticks() {
  return /** @type {HTMLInputElement[]} */ ([...byId("file-rows").querySelectorAll("input")]);
}

// --- what comes in ----------------------------------------------------------------------------

/** @param {{file: File, path: string}[]} files */
async function upload(files) {
  const { bucket, prefix } = here();
  const wanted = files.map(({ file, path }) => ({ file, key: prefix + path }));
  startUploads(bucket, wanted, async () => {
    const now = here();
    if (now.bucket === bucket && now.prefix === prefix && now.view === "files") await showFolder(false);
  });
}

function bindFolder() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("folder-dialog"));
  const form = /** @type {HTMLFormElement} */ (byId("folder-form"));
  byId("folder-new").addEventListener("click", () => {
    form.reset();
    restoreDraft(form);
    dialog.showModal();
  });
  onSubmit(form, async ({ folder }) => {
    dialog.close();
    const { bucket, prefix } = here();
    go(address({ bucket, prefix: `${prefix}${folder.replace(/\/+$/, "")}/` }));
  });
}
