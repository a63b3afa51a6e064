// @ts-check
/** Cancel a change of address with the token of its notification. */

import { post } from "./api.js";
import { byId, turnTo } from "./dom.js";
import { onSubmit } from "./forms.js";
import { fillIn, onLink } from "./link.js";
import { ready } from "./status.js";

onSubmit(/** @type {HTMLFormElement} */ (byId("cancel-form")), async ({ token }) => {
  await post("/v1/auth/email/cancel", { token: token.trim() });
  turnTo(byId("done"));
});
onLink(({ token }) => {
  fillIn(byId("token"), token);
  turnTo(byId("ask"));
});
ready();
