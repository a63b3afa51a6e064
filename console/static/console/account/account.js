// @ts-check
/** The account page: e-mail, password, sessions, leaving. */

import { bindEmail, showEmail } from "./email.js";
import { bindLeaving } from "./leaving.js";
import { bindPassword, showPassword } from "./password.js";
import { byId, show } from "../lib/dom.js";
import { onLink } from "../lib/link.js";
import { bindReveals } from "../lib/reveal.js";
import { bindSessions, showSessions } from "./sessions.js";
import { openPage } from "../frame/shell.js";

/** Stores a link's code while the user signs in. */
const KEPT = "zonal-mail-code";

onLink(({ code }) => {
  if (code) sessionStorage.setItem(KEPT, code);
});
await openPage(
  async (who) => {
    bindReveals();
    bindEmail(() => showEmail());
    bindPassword(who.email, showSessions);
    bindSessions();
    bindLeaving(who);
    await Promise.all([showEmail(takeCode()), showPassword(), showSessions()]);
  },
  async () => {
    // A session whose account lost its address: nothing else is open to it.
    for (const id of ["password", "sessions", "leaving"]) show(byId(id), false);
    show(byId("email-required"));
    bindReveals();
    bindEmail(async () => location.reload());
    await showEmail(takeCode());
  },
);

function takeCode() {
  const code = sessionStorage.getItem(KEPT) ?? "";
  sessionStorage.removeItem(KEPT);
  return code;
}
