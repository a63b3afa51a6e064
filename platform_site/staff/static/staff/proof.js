// @ts-check
/** Prove a passkey in place of a code, for an action that asks for the second factor again. */

import { offer } from "./passkey.js";

const proof = /** @type {HTMLElement} */ (document.getElementById("proof"));

offer("confirm", {}, () => {
  const form = proof.closest("form");
  proof.remove();
  form?.requestSubmit();
});
