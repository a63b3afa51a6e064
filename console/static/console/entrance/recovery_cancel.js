// @ts-check
/** Cancel a recovery with the code of its notice. */

import { post } from "../lib/api.js";
import { byId, turnTo } from "../lib/dom.js";
import { onSubmit } from "../lib/forms.js";
import { fillIn, onLink } from "../lib/link.js";
import { ready } from "../lib/status.js";

onSubmit(/** @type {HTMLFormElement} */ (byId("cancel-form")), async ({ token }) => {
  await post("/v1/auth/recovery/cancel", { token });
  turnTo(byId("done"));
});
onLink(({ token }) => {
  fillIn(byId("token"), token);
  turnTo(byId("ask"));
});
ready();
