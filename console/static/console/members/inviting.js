// @ts-check
/** The dialog that invites one person or many, and says of each what became of it. */

import { post } from "../lib/api.js";
import { byId, element, show } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { clearProblem, mark, onSubmit } from "../lib/forms.js";
import { count } from "../lib/format.js";
import { Problem } from "../lib/problem.js";
import { announce } from "../lib/status.js";
import { wordsOf } from "../lib/stored.js";
import { chooseRoles, chosenRoles } from "./roles.js";

/** The statuses of what is wrong with one address; others are wrong for all. */
const OF_ADDRESS = new Set([400, 409, 429]);

/** @param {() => Promise<void>} sent shows the invitations that wait */
export function bindInviting(sent) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("invite-dialog"));
  const form = /** @type {HTMLFormElement} */ (byId("invite"));
  const field = /** @type {HTMLTextAreaElement} */ (byId("invite-email"));
  byId("invite-open").addEventListener("click", () => {
    form.reset();
    chooseRoles(form, ["reader"]);
    restoreDraft(form);
    clearProblem(form);
    byId("invite-results").replaceChildren();
    dialog.showModal();
    field.focus();
  });
  onSubmit(form, async ({ email, labels }) => {
    const addresses = addressesOf(email);
    if (!addresses.length) {
      mark(form, "email", "Enter an e-mail address.");
      return;
    }
    const left = new Set(addresses);
    try {
      await inviteEach(left, { roles: chosenRoles(form), labels: wordsOf(labels) });
    } finally {
      // What was sent is not sent again.
      if (addresses.length > 1) field.value = [...left].join("\n");
      await sent();
    }
    if (addresses.length === 1) {
      dialog.close();
      announce(`An invitation is on its way to ${addresses[0]}.`);
    } else {
      byId("invite-results-title").textContent = `${addresses.length - left.size} of ${count(addresses.length, "invitation")} sent`;
      byId("invite-results-title").focus();
    }
  });
}

/**
 * Return the addresses of a text, each once: set apart by commas, semicolons, blanks or lines, with a
 * person's name before it or without, as mail programs copy them.
 * @param {string} text
 */
function addressesOf(text) {
  const pieces = text.replace(/"[^"]*"(?=\s*<)/g, "").split(/[,;\n]/);
  const words = pieces.flatMap((piece) => /<([^<>]*)>/.exec(piece)?.[1] ?? piece.split(/\s+/));
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const word of words.map((each) => each.trim().replace(/^mailto:/i, ""))) {
    if (word && !found.has(word.toLowerCase())) found.set(word.toLowerCase(), word);
  }
  return [...found.values()];
}

/**
 * Invite one after the other, and list what became of each; those that were refused are left.
 * @param {Set<string>} left the addresses
 * @param {{roles: string[], labels: string[]}} offer
 * @throws {Problem} of the only address, or one that is not about an address
 */
async function inviteEach(left, offer) {
  const isOne = left.size === 1;
  byId("invite-results").replaceChildren();
  show(byId("invite-outcome"), !isOne);
  for (const email of [...left]) {
    let result = "";
    try {
      await post("/v1/invitations", { email, ...offer });
      left.delete(email);
    } catch (error) {
      const isOfAddress = error instanceof Problem && OF_ADDRESS.has(error.status) && error.fields.every(({ field }) => field === "email");
      if (isOne || !isOfAddress) throw error;
      result = error.fields[0]?.message ?? error.sentence;
    }
    const item = element("li");
    const said = element("span", result || "Invited.");
    said.className = result ? "error" : "good";
    item.append(element("strong", email), said);
    byId("invite-results").append(item);
  }
}
