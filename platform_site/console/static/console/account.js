// @ts-check
/** The account page: e-mail, password, sessions. */

import { bindEmail, showEmail } from "./account_email.js";
import { bindPassword, showPassword } from "./account_password.js";
import { onLink } from "./link.js";
import { bindReveals } from "./reveal.js";
import { bindSessions, showSessions } from "./session_list.js";
import { openPage } from "./shell.js";

/** Stores a link's code while the user signs in. */
const KEPT = "zonal-mail-code";

onLink(({ code }) => {
  if (code) sessionStorage.setItem(KEPT, code);
});
await openPage(async (who) => {
  bindReveals();
  bindEmail();
  bindPassword(who.email, showSessions);
  bindSessions();
  const code = sessionStorage.getItem(KEPT) ?? "";
  sessionStorage.removeItem(KEPT);
  await Promise.all([showEmail(code), showPassword(), showSessions()]);
});
