// @ts-check
/** Sign up. */

import { post } from "./api.js";
import { byId } from "./dom.js";
import { onSubmit } from "./forms.js";
import { HOME } from "./places.js";
import { bindReveals } from "./reveal.js";
import { ready } from "./status.js";
import { tellOthers } from "./tabs.js";

bindReveals();
onSubmit(/** @type {HTMLFormElement} */ (byId("sign-up")), async ({ email, password, organization }) => {
  await post("/v1/auth/signup", { email, password, organization: organization.trim() || undefined });
  tellOthers();
  location.assign(HOME);
});
ready();
