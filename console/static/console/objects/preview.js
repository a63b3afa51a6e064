// @ts-check
/**
 * Shows pictures and text. Nothing of an object becomes markup, a document or an address: pictures
 * are decoded into a canvas, which no SVG can be, and text goes in as text.
 */

import { element } from "../lib/dom.js";
import { bytes } from "../lib/format.js";

const IMAGES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp"]);
const TEXTS = new Set(["application/json", "application/x-ndjson", "application/yaml", "application/toml"]);
/** Pages and drawings that can hold scripts are not shown, not even as text. */
const NEVER = new Set(["text/html", "text/xml", "text/javascript"]);
const IMAGE_LIMIT = 20_000_000;
const TEXT_LIMIT = 64 * 1024;
const PIXELS_ACROSS = 1200;

/** @param {string} type */
export function isImage(type) {
  return IMAGES.has(essence(type));
}

/**
 * Return an element that shows an object, or says why nothing does.
 * @param {{key: string, size: number, content_type: string}} found
 * @param {() => Promise<string>} sign returns a URL that reads it
 * @returns {Promise<HTMLElement>}
 */
export async function preview(found, sign) {
  const isPicture = isImage(found.content_type);
  if (!isPicture && !isText(found.content_type)) return note("No preview for this type.");
  if (isPicture && found.size > IMAGE_LIMIT) return note(`No preview above ${bytes(IMAGE_LIMIT)}.`);
  if (!found.size) return note("It is empty.");
  try {
    const answer = await read(await sign(), isPicture ? found.size : TEXT_LIMIT);
    const type = answer.headers.get("Content-Type") ?? "";
    // The response is authoritative: the object may have been replaced in the meantime.
    if (isPicture !== isImage(type) || isPicture === isText(type)) return note("No preview for this type.");
    const blob = (await answer.blob()).slice(0, isPicture ? IMAGE_LIMIT : TEXT_LIMIT);
    return isPicture ? await picture(blob, essence(type), found.key) : text(blob, found.size);
  } catch {
    return note("The preview could not be loaded.");
  }
}

/**
 * @param {string} url
 * @param {number} limit of bytes
 */
async function read(url, limit) {
  const answer = await fetch(url, {
    credentials: "omit",
    referrerPolicy: "no-referrer",
    redirect: "error",
    headers: { Range: `bytes=0-${limit - 1}` },
  });
  if (!answer.ok) throw new Error(`The object API answered ${answer.status}.`);
  return answer;
}

/**
 * @param {Blob} blob
 * @param {string} type
 * @param {string} key
 */
async function picture(blob, type, key) {
  const bitmap = await createImageBitmap(new Blob([blob], { type }));
  const canvas = document.createElement("canvas");
  const scale = Math.min(1, PIXELS_ACROSS / Math.max(bitmap.width, bitmap.height));
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext("2d")?.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  canvas.setAttribute("role", "img");
  canvas.setAttribute("aria-label", `Picture ${key}, ${bitmap.width} × ${bitmap.height} pixels`);
  bitmap.close();
  return canvas;
}

/**
 * @param {Blob} blob
 * @param {number} size of the whole object
 */
async function text(blob, size) {
  const content = new TextDecoder().decode(await blob.arrayBuffer());
  if (content.includes("\0")) return note("This is not text.");
  const shown = element("pre", content);
  shown.tabIndex = 0;
  shown.setAttribute("role", "region");
  shown.setAttribute("aria-label", "Text");
  if (size <= TEXT_LIMIT) return shown;
  const both = element("div");
  both.append(shown, note(`The first ${bytes(TEXT_LIMIT)} of ${bytes(size)}.`));
  return both;
}

/** @param {string} type */
function isText(type) {
  const name = essence(type);
  return TEXTS.has(name) || (name.startsWith("text/") && !NEVER.has(name));
}

/** @param {string} type a media type, perhaps with parameters */
function essence(type) {
  return type.split(";")[0].trim().toLowerCase();
}

/** @param {string} sentence */
function note(sentence) {
  const made = element("p", sentence);
  made.className = "muted";
  return made;
}
