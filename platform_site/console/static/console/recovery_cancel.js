// @ts-check
/** Cancel a recovery with the code of its notice. */

import { post } from "./api.js";
import { byId, turnTo } from "./dom.js";
import { onSubmit } from "./forms.js";
import { ready } from "./status.js";

onSubmit(/** @type {HTMLFormElement} */ (byId("cancel-form")), async ({ token }) => {
  await post("/v1/auth/recovery/cancel", { token });
  turnTo(byId("done"));
});
ready();
