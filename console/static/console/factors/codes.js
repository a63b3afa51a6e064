// @ts-check
/** Backup codes: shown once, to be copied or downloaded. */

import { byId, element, turnTo } from "../lib/dom.js";
import { save } from "../lib/download.js";
import { announce } from "../lib/status.js";
import { copy } from "../lib/clipboard.js";

/** @type {string[]} */
let shown = [];
/** @type {() => void} */
let proceed = () => {};
let isBound = false;

/**
 * Show codes until the user confirms that they are saved.
 * @param {string[]} codes
 * @returns {Promise<void>}
 */
export function showCodes(codes) {
  bind();
  shown = codes;
  const items = codes.map((code) => {
    const item = element("li");
    item.append(element("code", code));
    return item;
  });
  byId("backup-codes-list").replaceChildren(...items);
  turnTo(byId("backup-codes"));
  return new Promise((done) => {
    proceed = () => done();
  });
}

function bind() {
  if (isBound) return;
  isBound = true;
  byId("backup-codes-copy").addEventListener("click", () => copy(shown.join("\n"), "The codes are"));
  byId("backup-codes-download").addEventListener("click", download);
  byId("backup-codes-done").addEventListener("click", () => {
    shown = [];
    byId("backup-codes-list").replaceChildren();
    proceed();
  });
}

function download() {
  const text = `Backup codes of ${location.host}. Each works once.\n\n${shown.join("\n")}\n`;
  save("backup-codes.txt", text);
  announce("The codes are in your downloads.");
}
