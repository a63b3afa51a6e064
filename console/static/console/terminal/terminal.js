// @ts-check
/** Allow or deny a program at a terminal that wants to sign in. */

import { openPage } from "../frame/shell.js";
import { get, post } from "../lib/api.js";
import { bindCopies } from "../lib/clipboard.js";
import { byId, fill, show, turnTo } from "../lib/dom.js";
import { moment } from "../lib/format.js";
import { onPress } from "../lib/forms.js";
import { onLink } from "../lib/link.js";
import { Problem } from "../lib/problem.js";

const PATH = "/v1/auth/terminal";
/** The request of the link, which the visitor may have to sign in for first. */
const KEPT = "zonal-terminal";

let isOpen = false;
onLink(({ request }) => {
  if (request) sessionStorage.setItem(KEPT, request);
  if (isOpen) location.reload();
});

await openPage(async () => {
  isOpen = true;
  const request = sessionStorage.getItem(KEPT);
  if (request === null) return turnTo(byId("nothing"));
  bindCopies();
  const path = `${PATH}/${encodeURIComponent(request)}`;
  onPress(byId("allow"), byId("ask"), async () => {
    const { code, port } = await post(`${path}/allow`);
    over();
    if (port === null) return carry(code);
    turnTo(byId("allowed"));
    tell(port, { state: request, code });
  });
  onPress(byId("deny"), byId("ask"), async () => {
    const { port } = await post(`${path}/deny`);
    over();
    turnTo(byId("denied"));
    if (port !== null) tell(port, { state: request, error: "denied" });
  });
  await ask(path);
});

/** @param {string} path */
async function ask(path) {
  try {
    const { created_at, is_same_address, matching_code, host, program, address, ...more } = await get(path);
    const environment = more.environment || "one that does not exist here";
    const asked = moment(created_at);
    fill(byId("ask"), { matching_code, host, program, address, environment, asked });
    show(byId("elsewhere"), !is_same_address);
    turnTo(byId("ask"));
  } catch (error) {
    // Another visit to this page does not ask for what is over.
    if (error instanceof Problem && error.status === 410) over();
    throw error;
  }
}

/** @param {string} code */
function carry(code) {
  fill(byId("carry"), { code });
  turnTo(byId("carry"));
}

/**
 * Send the browser to the program's listener on this machine, and nowhere else.
 * @param {number} port
 * @param {Record<string, string>} answer
 */
function tell(port, answer) {
  location.assign(`http://127.0.0.1:${Number(port)}/callback?${new URLSearchParams(answer)}`);
}

function over() {
  sessionStorage.removeItem(KEPT);
}
