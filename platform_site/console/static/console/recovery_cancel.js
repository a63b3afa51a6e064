// @ts-check
/** Cancel a recovery with the code of its notice. */

import { post } from "./api.js";
import { byId, turnTo } from "./dom.js";
import { onSubmit } from "./forms.js";
import { fillIn, onLink } from "./link.js";
import { ready } from "./status.js";

onSubmit(/** @type {HTMLFormElement} */ (byId("cancel-form")), async ({ token }) => {
  await post("/v1/auth/recovery/cancel", { token });
  turnTo(byId("done"));
});
onLink(({ token }) => {
  fillIn(byId("token"), token);
  turnTo(byId("ask"));
});
ready();
