// @ts-check
/** Sign up. */

import { get, post } from "./api.js";
import { byId, fill, turnTo } from "./dom.js";
import { onSubmit } from "./forms.js";
import { offerProviders } from "./provider_choices.js";
import { bindReveals } from "./reveal.js";
import { ready } from "./status.js";
import { tellOthers } from "./tabs.js";

bindReveals();
onSubmit(/** @type {HTMLFormElement} */ (byId("sign-up")), async ({ email, password, organization }) => {
  await post("/v1/auth/signup", { email, password, organization: organization.trim() || undefined });
  tellOthers();
  const { org_id } = await get("/v1/whoami");
  fill(byId("done"), { org_id });
  turnTo(byId("done"));
});
await offerProviders(byId("sign-up"));
ready();
