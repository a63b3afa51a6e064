// @ts-check
/** Cancel a change of address with the token of its notification. */

import { post } from "../lib/api.js";
import { byId, turnTo } from "../lib/dom.js";
import { onSubmit } from "../lib/forms.js";
import { fillIn, onLink } from "../lib/link.js";
import { ready } from "../lib/status.js";

onSubmit(/** @type {HTMLFormElement} */ (byId("cancel-form")), async ({ token }) => {
  await post("/v1/auth/email/cancel", { token: token.trim() });
  turnTo(byId("done"));
});
onLink(({ token }) => {
  fillIn(byId("token"), token);
  turnTo(byId("ask"));
});
ready();
