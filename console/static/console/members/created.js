// @ts-check
/** What a member created: what ends when it is no admin any more, and what stays. */

import { get } from "../lib/api.js";

/** @type {Record<string, string>} */
const KINDS = {
  access_key: "S3 access key",
  api_key: "API key",
  invitation: "invitation of",
  node: "cache node",
  origin: "origin",
  webhook: "webhook",
};

/**
 * @param {string} userId
 * @returns {Promise<string>} sentences for the question before the change; '' if there is nothing
 */
export async function createdBy(userId) {
  const { ends, stays, is_complete } = await get(`/v1/members/${userId}/created`);
  const said = [];
  if (ends.length) said.push(`What was created as an admin ends with it: ${listed(ends)}.`);
  if (!is_complete) said.push("The cache does not answer: S3 access keys end when it does.");
  if (stays.length) said.push(`This stays, since others may depend on it: ${listed(stays)}.`);
  return said.join(" ");
}

/** @param {{kind: string, id: string, name: string, environment: string | null}[]} items */
function listed(items) {
  return items
    .map(({ kind, id, name, environment }) => `${KINDS[kind]} ${name || id}${environment ? ` (${environment})` : ""}`)
    .join(", ");
}
