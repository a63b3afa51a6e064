// @ts-check
/** The beginning of a CSV file, read in the browser: how it is written, and what its columns are. */

import { Problem } from "../lib/problem.js";

/** Enough for a preview; a longer first line is read further. */
const READ_BYTES = 65_536;
const MOST_READ_BYTES = 16 * READ_BYTES;
const COMPARED = 20;
export const DELIMITERS = /** @type {const} */ ([",", ";", "\t", "|"]);

/** @typedef {{value: string, isQuoted: boolean}} Part */

/**
 * The text of a file's beginning. isWhole: it is all of the file.
 * @typedef {{text: string, isWhole: boolean}} Beginning
 */

/**
 * Return the beginning of a file, with its first record at least.
 * @param {File} file
 * @returns {Promise<Beginning>}
 * @throws {Problem}
 */
export async function beginningOf(file) {
  if (!file.size) throw new Problem(0, { title: "This file is empty." });
  for (let size = READ_BYTES; ; size *= 4) {
    const isWhole = size >= file.size;
    const content = await bytesOf(file.slice(0, size));
    let text = "";
    try {
      // A character may be cut at the end of the slice.
      text = new TextDecoder("utf-8", { fatal: true }).decode(content, { stream: !isWhole });
    } catch {
      throw new Problem(0, { title: "This file is not UTF-8.", detail: "Save it as UTF-8 in the program that it comes from, and choose it again." });
    }
    if (isWhole || DELIMITERS.every((delimiter) => recordsOf({ text, isWhole }, delimiter, 1).length)) return { text, isWhole };
    if (size >= MOST_READ_BYTES) throw new Problem(0, { title: "The first line of this file has no end.", detail: "A quotation mark in it may be open." });
  }
}

/**
 * @param {Blob} part of a file
 * @throws {Problem} where the file was moved or changed since it was chosen
 */
async function bytesOf(part) {
  try {
    return await part.arrayBuffer();
  } catch {
    throw new Problem(0, { title: "This file cannot be read any more.", detail: "It was moved or changed since you chose it: choose it again." });
  }
}

/**
 * Return the first records, without one that is cut.
 * @param {Beginning} beginning
 * @param {string} delimiter
 * @param {number} most
 * @returns {Part[][]}
 */
export function recordsOf({ text, isWhole }, delimiter, most) {
  const records = [];
  /** @type {Part[]} */
  let record = [];
  let part = { value: "", isQuoted: false };
  let isInside = false;
  const endPart = () => {
    record.push(part);
    part = { value: "", isQuoted: false };
  };
  for (let at = 0; at < text.length && records.length < most; at++) {
    const character = text[at];
    if (isInside) {
      if (character !== '"') part.value += character;
      else if (text[at + 1] === '"') part.value += text[at++ + 1];
      else isInside = false;
    } else if (character === '"') {
      isInside = part.isQuoted = true;
    } else if (character === delimiter) {
      endPart();
    } else if (character === "\n" || character === "\r") {
      if (character === "\r" && text[at + 1] === "\n") at += 1;
      endPart();
      records.push(record);
      record = [];
    } else part.value += character;
  }
  const hasRest = record.length > 0 || part.value !== "" || part.isQuoted;
  if (isWhole && !isInside && hasRest && records.length < most) {
    endPart();
    records.push(record);
  }
  return records;
}

/**
 * Return the delimiter that a file has most likely: the one with which the first records have most
 * columns, and all of them as many.
 * @param {Beginning} beginning
 * @returns {string}
 */
export function delimiterOf(beginning) {
  const scored = DELIMITERS.map((delimiter) => {
    const lengths = recordsOf(beginning, delimiter, COMPARED).map((record) => record.length);
    const isEven = lengths.every((length) => length === lengths[0]);
    return { delimiter, score: (lengths[0] ?? 0) > 1 ? lengths[0] + (isEven ? 1000 : 0) : 0 };
  });
  return scored.reduce((best, one) => (one.score > best.score ? one : best)).delimiter;
}

/**
 * Return the column that each name means, "" for none: itself, or written in another case or with blanks.
 * @param {string[]} names
 * @param {string[]} columns
 */
export function matched(names, columns) {
  const folded = (/** @type {string} */ name) => name.trim().toLowerCase().replace(/[\s_-]+/g, "_");
  /** @type {Set<string>} */
  const taken = new Set();
  const found = names.map(() => "");
  for (const isSame of [(/** @type {string} */ one, /** @type {string} */ other) => one === other, (/** @type {string} */ one, /** @type {string} */ other) => folded(one) === folded(other)]) {
    names.forEach((name, at) => {
      const column = found[at] ? undefined : columns.find((each) => !taken.has(each) && isSame(name, each));
      if (!column) return;
      taken.add(column);
      found[at] = column;
    });
  }
  return found;
}
