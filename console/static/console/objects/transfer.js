// @ts-check
/**
 * Sends one file to the object API by URLs that the platform signs: whole, or in parts that are
 * repeated on their own. No object is replaced unasked: the request that writes one has a condition,
 * and an origin, which may ignore it, is asked before.
 */

import { post } from "../lib/api.js";
import { Problem } from "../lib/problem.js";
import { upload } from "../lib/upload.js";
import { detailsOf } from "./details.js";
import { objectsOf } from "./place.js";

/** @typedef {import("./deletion.js").Bucket} Bucket */

const WHOLE_LIMIT = 16 * 2 ** 20;
const LEAST_PART = 8 * 2 ** 20;
const PARTS = 10_000;
/** URLs per request; they are valid for an hour. */
const URLS_AT_ONCE = 20;
const PARTS_AT_ONCE = 3;
const ATTEMPTS = 4;
const FIRST_PAUSE_MS = 500;
const LIFE_S = 3600;

/** The object API refused, or could not be reached. */
export class TransferFailed extends Error {}

/** The key has an object already, which the transfer was not to replace. */
export class AlreadyThere extends Error {}

/** The bucket's origin takes no write with a condition. */
class NoConditions extends TransferFailed {}

export class Transfer {
  /**
   * @param {Bucket} bucket
   * @param {string} key
   * @param {File} file
   * @param {(sent: number) => void} progressed of bytes
   */
  constructor(bucket, key, file, progressed) {
    this.bucket = bucket;
    this.key = key;
    this.file = file;
    this.progressed = progressed;
    // What a file cannot say is left to the reader of the object.
    this.type = /^[\x20-\x7e]{1,255}$/.test(file.type) ? file.type : "application/octet-stream";
    /** Else the object is written only where none is. */
    this.isReplacing = false;
    this.hasConditions = true;
    this.uploadId = "";
    /** @type {Map<number, string>} ETags of the parts that are there */
    this.done = new Map();
    /** @type {Map<number, number>} bytes sent of the parts in progress */
    this.underWay = new Map();
    this.stop = new AbortController();
  }

  /**
   * Send what is not there yet.
   * @throws {TransferFailed} and Problem, AlreadyThere; may be repeated then
   */
  async send() {
    this.stop = new AbortController();
    const isWhole = this.file.size <= WHOLE_LIMIT;
    // The answer to a condition comes after the last byte: a large file is not sent in vain.
    if (!this.isReplacing && (this.bucket.origin || !isWhole)) await this.insist(() => this.checkAbsent());
    if (isWhole) await this.sendWhole();
    else await this.sendParts();
  }

  /** Stop, and remove what was sent of it. */
  async cancel() {
    this.stop.abort();
    if (!this.uploadId) return;
    const [url] = await this.sign({ step: "abort", upload_id: this.uploadId });
    await fetch(url, { method: "DELETE", credentials: "omit" });
  }

  async sendWhole() {
    await this.insist(async () => {
      const { signed, headers } = await this.condition();
      const [url] = await this.sign({ step: "put", content_type: this.type, ...signed });
      await this.put(url, this.file, 1, { "Content-Type": this.type, ...headers });
    });
  }

  /**
   * Return what a URL to write the object is signed with, and what its request has.
   * @returns {Promise<{signed: object, headers: Record<string, string>}>}
   * @throws {AlreadyThere}
   */
  async condition() {
    if (!this.isReplacing && this.hasConditions) return { signed: { if_none_match: "*" }, headers: { "If-None-Match": "*" } };
    if (!this.isReplacing) await this.checkAbsent();
    return { signed: {}, headers: {} };
  }

  /** @throws {AlreadyThere} */
  async checkAbsent() {
    if (await detailsOf(this.bucket, this.key)) throw new AlreadyThere();
  }

  async sendParts() {
    if (!this.uploadId) {
      const [url] = await this.sign({ step: "create", content_type: this.type });
      const answer = await this.ask(url, { headers: { "Content-Type": this.type } });
      this.uploadId = elementOf(answer, "UploadId");
    }
    const size = Math.max(LEAST_PART, Math.ceil(this.file.size / PARTS));
    const count = Math.ceil(this.file.size / size);
    const left = Array.from({ length: count }, (_, index) => index + 1).filter((number) => !this.done.has(number));
    while (left.length) {
      const numbers = left.splice(0, URLS_AT_ONCE);
      const urls = await this.sign({ step: "part", upload_id: this.uploadId, part_numbers: numbers });
      const queue = numbers.map((number, index) => ({ number, url: urls[index] }));
      const lanes = Array.from({ length: PARTS_AT_ONCE }, async () => {
        for (let next = queue.shift(); next; next = queue.shift()) await this.sendPart(next.number, next.url, size);
      });
      await this.all(lanes);
    }
    await this.complete();
  }

  /**
   * @param {number} number
   * @param {string} url
   * @param {number} size of each part but the last
   */
  async sendPart(number, url, size) {
    const body = this.file.slice((number - 1) * size, number * size);
    await this.insist(async () => {
      this.done.set(number, await this.put(url, body, number));
    });
    this.report();
  }

  async complete() {
    const parts = [...this.done].toSorted(([one], [other]) => one - other);
    const listed = parts.map(([number, etag]) => `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag></Part>`);
    const body = `<CompleteMultipartUpload>${listed.join("")}</CompleteMultipartUpload>`;
    await this.insist(async () => {
      const { signed, headers } = await this.condition();
      const [url] = await this.sign({ step: "complete", upload_id: this.uploadId, ...signed });
      // A slow completion is a 200 that may hold an error.
      elementOf(await this.ask(url, { body, headers }), "ETag");
    });
  }

  /**
   * Wait for all; the first failure stops the others.
   * @param {Promise<void>[]} lanes
   */
  async all(lanes) {
    try {
      await Promise.all(lanes);
    } catch (error) {
      this.stop.abort();
      await Promise.allSettled(lanes);
      throw error;
    }
  }

  /**
   * Repeat an action that failed, after growing pauses.
   * @param {() => Promise<void>} action
   */
  async insist(action) {
    const { signal } = this.stop;
    for (let attempt = 1; ; attempt += 1) {
      try {
        signal.throwIfAborted();
        return await action();
      } catch (error) {
        if (signal.aborted || attempt === ATTEMPTS || !isPassing(error)) throw error;
        if (error instanceof NoConditions) this.hasConditions = false;
      }
      await new Promise((done) => setTimeout(done, FIRST_PAUSE_MS * 2 ** attempt));
    }
  }

  /**
   * @param {object} step
   * @returns {Promise<string[]>}
   */
  async sign(step) {
    const { urls } = await post(`${objectsOf(this.bucket.name)}/upload-urls`, { key: this.key, expires_in_s: LIFE_S, ...step });
    return urls;
  }

  /**
   * POST to the object API; return the text of its answer.
   * @param {string} url
   * @param {RequestInit} options
   */
  async ask(url, options) {
    const { signal } = this.stop;
    const answer = await answered(fetch(url, { method: "POST", credentials: "omit", signal, ...options }));
    return answer.text();
  }

  /**
   * PUT with progress; return the ETag.
   * @param {string} url
   * @param {Blob} body
   * @param {number} number of the part
   * @param {Record<string, string>} [headers]
   * @returns {Promise<string>}
   */
  async put(url, body, number, headers = {}) {
    const { signal } = this.stop;
    try {
      const sending = upload(url, { method: "PUT", headers, body, signal }, (sent) => {
        this.underWay.set(number, sent);
        this.report();
      });
      return (await answered(sending)).headers.get("ETag") ?? "";
    } finally {
      this.underWay.delete(number);
    }
  }

  report() {
    const size = Math.max(LEAST_PART, Math.ceil(this.file.size / PARTS));
    const sent = [...this.underWay.values()].reduce((sum, each) => sum + each, this.done.size * size);
    this.progressed(Math.min(sent, this.file.size));
  }
}

/**
 * True for what may be otherwise a moment later.
 * @param {unknown} error
 */
function isPassing(error) {
  if (error instanceof Problem) return error.status === 503 || error.code === "unreachable";
  return error instanceof TransferFailed;
}

/**
 * Return the answer of the object API.
 * @param {Promise<Response>} answer
 * @throws {TransferFailed} and AlreadyThere, NoConditions
 */
async function answered(answer) {
  let found;
  try {
    found = await answer;
  } catch {
    throw new TransferFailed("The object API cannot be reached.");
  }
  if (!found.ok) throw refusalOf(await found.text(), found.status);
  return found;
}

/**
 * Return the text of an element of S3's XML.
 * @param {string} xml
 * @param {string} name
 */
function elementOf(xml, name) {
  const found = new RegExp(`<${name}>([^<]*)</${name}>`).exec(xml);
  if (!found) throw refusalOf(xml, 200);
  return found[1].replaceAll("&quot;", '"');
}

/**
 * Return S3's error, with what its XML says.
 * @param {string} xml
 * @param {number} status
 */
function refusalOf(xml, status) {
  const code = /<Code>([^<]*)<\/Code>/.exec(xml)?.[1];
  if (code === "PreconditionFailed") return new AlreadyThere();
  const said = /<Message>([^<]*)<\/Message>/.exec(xml)?.[1] ?? `The object API answered ${status}.`;
  return code === "NotImplemented" ? new NoConditions(said) : new TransferFailed(said);
}
