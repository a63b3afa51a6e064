// @ts-check
/** Prove a passkey to the admin, with the page's button. */

import { isAvailable, prove } from "../console/factors/passkeys.js";
import { Cancelled } from "../console/lib/problem.js";

const button = /** @type {HTMLButtonElement} */ (document.getElementById("passkey"));
const problem = /** @type {HTMLElement} */ (document.getElementById("passkey-problem"));

/**
 * Show the button where passkeys work, and prove one when it is pressed.
 * @param {"finish" | "confirm"} last the step that receives the proof
 * @param {object} more further members of its body
 * @param {(answer: any) => void} done
 */
export function offer(last, more, done) {
  if (isAvailable()) button.hidden = false;
  button.addEventListener("click", async () => {
    button.disabled = true;
    problem.textContent = "";
    try {
      const begun = await send("start", {});
      const credential = await prove(begun.request_options);
      done(await send(last, { challenge_id: begun.challenge_id, credential, ...more }));
    } catch (error) {
      if (!(error instanceof Cancelled)) problem.textContent = message(error);
      button.disabled = false;
    }
  });
}

/**
 * @param {"start" | "finish" | "confirm"} step
 * @param {object} body
 * @returns {Promise<any>}
 */
async function send(step, body) {
  const token = /** @type {HTMLInputElement} */ (
    button.form?.querySelector("[name=csrfmiddlewaretoken]")
  );
  const response = await fetch(`${button.dataset.path}${step}/`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-CSRFToken": token.value },
    body: JSON.stringify(body),
  });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) throw new Error(answer.detail || answer.title || "It did not work. Try again.");
  return answer;
}

/** @param {any} error */
function message(error) {
  return error.title || error.message || "It did not work. Try again.";
}
