// @ts-check
/** Purges: first a preview, then the purge. */

import { post } from "./api.js";
import { byId, fill, show } from "./dom.js";
import { bytes, count } from "./format.js";
import { onPress, onSubmit } from "./forms.js";
import { announce } from "./status.js";

const PATH = "/v1/cache/purge";

/** @type {Record<string, unknown> | null} */
let previewed = null;

/** @param {() => Promise<void>} refresh */
export function bindPurge(refresh) {
  const form = /** @type {HTMLFormElement} */ (byId("purge-form"));
  const outcome = byId("purge-preview");
  const forgetPreview = () => {
    previewed = null;
    show(outcome, false);
  };
  form.addEventListener("input", forgetPreview);
  onSubmit(form, async (values) => {
    forgetPreview();
    const wanted = read(values, new FormData(form).has("all"));
    const hit = await post(PATH, { ...wanted, preview: true });
    fill(outcome, {
      preview: `This will hit ${count(hit.objects_purged, "object")} (${bytes(hit.bytes_freed)}) on ${count(hit.nodes_affected, "node")}. The origin keeps them.`,
    });
    previewed = wanted;
    show(outcome);
    byId("purge-now").focus();
  });
  onPress(byId("purge-now"), outcome, async () => {
    if (!previewed) return;
    const hit = await post(PATH, previewed);
    forgetPreview();
    form.reset();
    announce(`${count(hit.objects_purged, "object")} purged, ${bytes(hit.bytes_freed)} freed.`);
    await refresh();
  });
}

/**
 * @param {Record<string, string>} values
 * @param {boolean} isAll
 */
function read(values, isAll) {
  const keys = values.keys.split("\n").filter((line) => line.trim());
  return {
    ...(keys.length ? { keys } : {}),
    ...(values.prefix ? { prefix: values.prefix } : {}),
    ...(isAll ? { all: true } : {}),
  };
}
