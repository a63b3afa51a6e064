// @ts-check
/** What PostgreSQL said while it wrote, after what the page says of the write. */

/** @typedef {{severity: string, message: string, detail?: string, hint?: string}} Notice */

/**
 * @param {string} said
 * @param {{notices: Notice[]}} answer
 */
export function withNotices(said, { notices }) {
  return [said, ...notices.map(sentencesOf)].join(" ");
}

/** @param {Notice} notice */
function sentencesOf({ severity, message, detail, hint }) {
  return [`${severity}: ${message}.`, detail, hint].filter(Boolean).join(" ");
}
