// @ts-check
/** The environment's buckets. */

import { get, post } from "../lib/api.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { dated } from "../lib/format.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { announce } from "../lib/status.js";
import { BUCKETS, address, go } from "./place.js";
import { purge } from "./purge.js";

let mayWrite = false;

/** @param {boolean} may true for admins and operators */
export function bindBuckets(may) {
  mayWrite = may;
  const dialog = /** @type {HTMLDialogElement} */ (byId("bucket-dialog"));
  const form = /** @type {HTMLFormElement} */ (byId("bucket-form"));
  const origin = /** @type {HTMLSelectElement} */ (byId("bucket-origin"));
  for (const id of ["bucket-new", "bucket-first"]) {
    onPress(byId(id), byId("buckets"), async () => {
      await offerOrigins(origin);
      form.reset();
      restoreDraft(form);
      show(byId("bucket-prefix-field"), origin.value !== "");
      dialog.showModal();
    });
  }
  origin.addEventListener("change", () => show(byId("bucket-prefix-field"), origin.value !== ""));
  onSubmit(form, async (values) => {
    const isPublic = new FormData(form).has("is_public");
    const from = values.origin ? { origin: values.origin, origin_prefix: values.origin_prefix } : {};
    await post(BUCKETS, { name: values.name, is_public: isPublic, ...from });
    dialog.close();
    announce(`${values.name} is created.`);
    go(address({ bucket: values.name }));
  });
  onPress(byId("purge-all"), byId("buckets"), () =>
    purge({ all: true }, "everything of this environment"),
  );
}

export async function showBuckets() {
  const { results } = await get(BUCKETS);
  byId("bucket-rows").replaceChildren(...results.map(row));
  show(byId("bucket-table"), results.length > 0);
  show(byId("no-buckets"), results.length === 0);
  byId("bucket-new").classList.toggle("primary", results.length > 0);
  show(byId("purge-all"), mayWrite && results.length > 0);
}

/** @param {any} bucket */
function row(bucket) {
  const made = stamp("bucket-row");
  fill(made, {
    name: bucket.name,
    access: "",
    origin: bucket.origin ?? "this platform",
    created: dated(bucket.created_at),
  });
  within(made, "a").setAttribute("href", address({ bucket: bucket.name }));
  const access = element("span", bucket.is_public ? "Public" : "Private");
  access.className = bucket.is_public ? "pill public" : "pill";
  within(made, '[data-slot="access"]').append(access);
  return made;
}

/** @param {HTMLSelectElement} select */
async function offerOrigins(select) {
  const { results } = mayWrite ? await get("/v1/cache/origins") : { results: [] };
  const choices = results.map((/** @type {any} */ each) => new Option(`${each.name} (${each.kind})`, each.name));
  select.replaceChildren(new Option("this platform", ""), ...choices);
}
