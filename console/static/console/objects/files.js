// @ts-check
/** The objects of a bucket, as folders and files. */

import { get } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { count } from "../lib/format.js";
import { attempt, onPress, onSubmit } from "../lib/forms.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";
import { deleteAll, deleteKeys } from "./deletion.js";
import { openDetails } from "./details.js";
import { bindDrop, inFolders } from "./drop.js";
import { address, bucketPath, go, here, nameOf, note, objectsOf } from "./place.js";
import { purge } from "./purge.js";
import { bindRows, chosenKeys, clearRows, compareKeys, putFile, putFolder, removeRows, rowCount } from "./rows.js";
import { startUploads } from "./uploads.js";
import { deletedIn } from "./versions.js";

/** @typedef {import("./drop.js").FoundFile} FoundFile */

const PAGE = 200;

let mayWrite = false;
/** @type {import("./deletion.js").Bucket} the open one */
let bucket = { name: "", origin: null };
/** @type {string | null} the last key of the rows, if the folder has more */
let next = null;
// A slow answer must not fill the folder that was opened after it was asked for.
let asked = 0;
/** @type {Promise<unknown>} */
let loading = Promise.resolve();

/** @param {boolean} may */
export function bindFiles(may) {
  mayWrite = may;
  const section = byId("files");
  for (const button of section.querySelectorAll("[data-picks]")) {
    const picker = byId(/** @type {HTMLElement} */ (button).dataset.picks ?? "");
    button.addEventListener("click", () => picker.click());
  }
  for (const picker of section.querySelectorAll("input[type=file]")) {
    picker.addEventListener("change", () => {
      const files = inFolders(/** @type {HTMLInputElement} */ (picker));
      void attempt(section, () => upload(files));
    });
  }
  if (may) bindDrop(byId("drop"), (found) => void attempt(section, async () => upload(await found)));
  onPress(byId("files-more"), section, () => showPage(next ?? ""));
  onPress(byId("files-refresh"), section, showFiles);
  onPress(byId("files-deleted"), section, showDeleted);
  onPress(byId("purge-folder"), section, () => {
    const { prefix } = here();
    return purge({ prefix: `${bucket.name}/${prefix}` }, prefix ? nameOf(prefix) : `all of ${bucket.name}`);
  });
  const filter = /** @type {HTMLInputElement} */ (byId("filter"));
  filter.addEventListener("input", () => {
    note({ filter: filter.value });
    void attempt(section, () => showPage(""));
  });
  byId("filter-form").addEventListener("submit", (event) => event.preventDefault());
  bindFolder();
  bindRows(may);
  onPress(byId("delete-selected"), section, async () => {
    const { folders, files } = chosenKeys();
    if (folders.length) await deleteAll(bucket, folders, files);
    else await deleteKeys(bucket, files);
    await showWithout([...folders, ...files]);
  });
}

/** @throws {Problem} also for a bucket that is not there */
export async function showFiles() {
  const place = here();
  const { prefix, filter, object } = place;
  asked += 1;
  const mine = asked;
  /** @type {HTMLInputElement} */ (byId("filter")).value = filter;
  byId("to-settings").setAttribute("href", address({ bucket: place.bucket, view: "settings" }));
  fill(byId("drop"), { into: `${place.bucket}/${prefix}` });
  fill(byId("files"), { here: `${place.bucket}/${prefix}` });
  showCrumbs(place.bucket, prefix);
  clearRows();
  for (const id of ["no-files", "file-table", "files-more"]) show(byId(id), false);
  // What is pressed before the answer is meant for this bucket, not for the one before.
  if (bucket.name !== place.bucket) bucket = { name: place.bucket, origin: null };
  const found = await get(bucketPath(place.bucket));
  if (mine !== asked) return;
  bucket = found;
  if (object) void open(object);
  await showPage("");
}

/** @param {string} after empty for the first page */
async function showPage(after) {
  const { prefix, filter } = here();
  const query = new URLSearchParams({ prefix: prefix + filter, delimiter: "/", limit: String(PAGE), after });
  asked += 1;
  const mine = asked;
  const answer = get(`${objectsOf(bucket.name)}?${query}`);
  loading = answer;
  const page = await answer.catch(withoutList);
  if (mine !== asked) return;
  // What is shown stays until the answer is there.
  if (!after) clearRows();
  for (const key of page.prefixes) putFolder(key);
  for (const found of page.objects) {
    // An object with the folder's own name marks an empty folder.
    if (found.key !== prefix) putFile(found, () => void open(found.key));
  }
  next = page.next_after;
  showState(page.refusal);
}

/**
 * Return an empty page for a bucket whose origin has no list.
 * @param {unknown} error
 */
function withoutList(error) {
  if (!(error instanceof Problem) || error.code !== "origin_read_only") throw error;
  return { prefixes: [], objects: [], next_after: null, refusal: error.message };
}

/**
 * Show the table, or what to do where there is none.
 * @param {string} [refusal] why there is no list
 */
function showState(refusal = "") {
  const { prefix, filter } = here();
  const isEmpty = rowCount() === 0;
  const isNew = isEmpty && !prefix && !filter && !refusal;
  const texts = refusal ? [refusal, `They stay at the origin ${bucket.origin}, and each is read by its key.`]
    : filter ? ["No name begins with that", "Only names in this folder are compared, capitals and all."]
    : prefix ? ["This folder is empty", "A folder exists as long as objects are in it."]
    : ["This bucket is empty", mayWrite ? "Choose files or a folder, or drop them here." : "Nothing was uploaded to it yet."];
  fill(byId("no-files"), { empty: texts[0], about: texts[1] });
  show(byId("no-files"), isEmpty);
  show(byId("file-table"), !isEmpty);
  show(byId("files-more"), next !== null);
  show(byId("files-deleted"), Boolean(bucket.versioning));
  show(byId("filter-form"), (!isNew || Boolean(bucket.versioning)) && !refusal);
  show(byId("first-upload"), isNew && mayWrite);
  for (const id of ["upload", "upload-tree"]) show(byId(id), mayWrite && !isNew && !refusal);
  show(byId("folder-new"), mayWrite && !refusal);
  // Of a bucket with an origin the cache may keep what is gone there.
  show(byId("purge-folder"), mayWrite && (!isNew || bucket.origin !== null));
}

/** Add what was deleted in this folder to the list. */
async function showDeleted() {
  const mine = asked;
  const found = await deletedIn(bucket, here().prefix + here().filter);
  if (mine !== asked) return;
  for (const { key, last_modified } of found) putFile({ key, size: null, last_modified }, () => void open(key));
  showState();
  announce(`${count(found.length, "deleted object")} shown.`);
}

/** @param {string} key */
function open(key) {
  return openDetails(bucket, key, { gone: () => showWithout([key]), changed: () => showPage("") });
}

/**
 * Take out of the list what was deleted.
 * @param {string[]} keys
 */
async function showWithout(keys) {
  removeRows(keys);
  if (!rowCount() && next !== null) await showPage("");
  else showState();
}

/**
 * Put an object that was stored just now in its place, or its folder. The list is not loaded anew: the
 * user works in it.
 * @param {string} to the bucket
 * @param {string} key
 * @param {number} size
 */
async function showStored(to, key, size) {
  await loading.catch(() => {});
  const { view, bucket: shown, prefix, filter } = here();
  if (view !== "files" || shown !== to || !key.startsWith(prefix + filter)) return;
  const slash = key.indexOf("/", prefix.length);
  const row = slash < 0 ? key : key.slice(0, slash + 1);
  // It comes with a later page.
  if (next !== null && compareKeys(row, next) > 0) return;
  if (slash < 0) putFile({ key, size, last_modified: new Date() }, () => void open(key));
  else putFolder(row);
  showState();
}

/**
 * @param {string} name of the bucket
 * @param {string} prefix
 */
function showCrumbs(name, prefix) {
  const folders = prefix.split("/").slice(0, -1);
  const places = [
    { name: "Buckets", to: address({ view: "buckets" }) },
    { name, to: address({ bucket: name }) },
    ...folders.map((folder, index) => ({
      name: folder || "/",
      to: address({ bucket: name, prefix: `${folders.slice(0, index + 1).join("/")}/` }),
    })),
  ];
  const items = places.map(({ name: text, to }, index) => {
    const item = element("li");
    const link = element("a", text);
    link.setAttribute("href", to);
    if (index === places.length - 1) link.setAttribute("aria-current", "page");
    item.append(link);
    return item;
  });
  byId("crumbs").replaceChildren(...items);
}

// --- what comes in ----------------------------------------------------------------------------

/**
 * @param {FoundFile[]} found
 * @throws {Problem} where nothing can be uploaded
 */
async function upload(found) {
  const { prefix } = here();
  const target = bucket;
  const files = await withoutClashes(found.map(({ file, path }) => ({ file, key: prefix + path })));
  startUploads(target, files, (key, size) => void showStored(target.name, key, size));
}

/**
 * Return the files that become an object each. Where several would become one, ask whether the others
 * are uploaded.
 * @param {{file: File, key: string}[]} files
 */
async function withoutClashes(files) {
  if (!files.length) throw new Problem(0, { title: "There is no file in it: nothing is uploaded." });
  /** @type {Map<string, number>} */
  const times = new Map();
  for (const { key } of files) times.set(key, (times.get(key) ?? 0) + 1);
  const clashing = [...times.keys()].filter((key) => times.get(key) !== 1);
  if (!clashing.length) return files;
  const left = files.filter(({ key }) => times.get(key) === 1);
  const said = "Several files would become the same object";
  if (!left.length) throw new Problem(0, { title: `${said}: ${clashing.join(", ")}. Nothing is uploaded.` });
  const text = "None of them is uploaded: rename them, or upload them into different folders.";
  await confirm(`${said}.`, text, `Upload the other ${count(left.length, "file")}`, clashing.join("\n"));
  return left;
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
    const { bucket: name, prefix } = here();
    go(address({ bucket: name, prefix: `${prefix}${folder.replace(/\/+$/, "")}/` }));
  });
}
