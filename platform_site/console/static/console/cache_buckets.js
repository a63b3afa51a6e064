// @ts-check
/** The environment's buckets. */

import { call, get, post } from "./api.js";
import { confirm } from "./confirm.js";
import { byId, element, fill, show, stamp, within } from "./dom.js";
import { onPress, onSubmit } from "./forms.js";
import { announce } from "./status.js";

const PATH = "/v1/cache/buckets";

let mayChange = false;

/** @param {boolean} isAdmin */
export function bindBuckets(isAdmin) {
  mayChange = isAdmin;
  show(byId("bucket-new"), isAdmin);
  const form = /** @type {HTMLFormElement} */ (byId("bucket-form"));
  onSubmit(form, async ({ name }) => {
    await post(PATH, { name, is_public: new FormData(form).has("is_public") });
    form.reset();
    announce(`${name} is there.`);
    await showBuckets();
  });
}

export async function showBuckets() {
  const { results } = await get(PATH);
  const list = byId("bucket-list");
  list.replaceChildren(...results.map(row));
  if (!results.length) list.append(element("li", "There are none."));
}

/** @param {any} bucket */
function row(bucket) {
  const made = stamp("bucket-row");
  const origin = bucket.origin ? `from ${bucket.origin}` : "built-in origin";
  const reach = bucket.is_public ? `public at /p/${bucket.public_name}/` : "private";
  fill(made, { name: bucket.name, about: `${reach}, ${origin}` });
  const [turn, remove] = ["turn", "remove"].map((name) => within(made, `[data-action="${name}"]`));
  show(within(made, ".actions"), mayChange);
  turn.textContent = bucket.is_public ? "Make private" : "Make public";
  onPress(turn, byId("buckets"), async () => {
    if (!bucket.is_public) {
      await confirm(`Make ${bucket.name} public?`, "Anyone who knows its address can read every object in it.", "Make public");
    }
    await call("PATCH", `${PATH}/${bucket.name}`, { is_public: !bucket.is_public });
    await showBuckets();
  });
  onPress(remove, byId("buckets"), async () => {
    await confirm(`Delete ${bucket.name}?`, "Only an empty bucket can be deleted.", "Delete");
    await call("DELETE", `${PATH}/${bucket.name}`);
    announce(`${bucket.name} is deleted.`);
    await showBuckets();
  });
  return made;
}
