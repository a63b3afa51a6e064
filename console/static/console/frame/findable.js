// @ts-check
/** What the palette finds in addition to pages and actions: members, buckets, tables, saved queries. */

import { get, list } from "../lib/api.js";
import { optional } from "../lib/optional.js";

/** @typedef {import("./palette.js").Command} Command */

/** Members that are listed at once; in a larger organization others are searched for. */
const LISTED = 200;
const FOUND = "12";
const SHORTEST_SEARCH = 2;
/** The first page of members, once it was asked for. @type {Promise<any>} */
let listed = Promise.resolve(null);

/**
 * Return what there is to find, of each kind as soon as it is known; kinds that the role may not see,
 * or that are away, are left out.
 * @param {{environment: string, seesMembers: boolean}} where
 * @returns {Promise<Command[]>[]}
 */
export function findable({ environment, seesMembers }) {
  return [...(seesMembers ? [members()] : []), buckets(), tables(environment), savedQueries()];
}

async function members() {
  listed = optional(get(`/v1/members?page_size=${LISTED}`));
  const page = await listed;
  return (page?.results ?? []).map(memberCommand);
}

/**
 * Return members whose address contains a text, in an organization that has more than are listed.
 * @param {string} text
 * @returns {Promise<Command[]>}
 */
export async function findMembers(text) {
  if (text.length < SHORTEST_SEARCH || !(await listed)?.next) return [];
  const page = await optional(get(`/v1/members?${new URLSearchParams({ email: text, page_size: FOUND })}`));
  return (page?.results ?? []).map(memberCommand);
}

/** @param {any} member of the API */
function memberCommand({ email, user_id }) {
  return command("Member", email || user_id, "members", email ? { email } : {});
}

async function buckets() {
  const found = await optional(get("/v1/cache/buckets"));
  return (found?.results ?? []).map((/** @type {any} */ { name }) => command("Bucket", name, "objects", { bucket: name }));
}

/** @param {string} environment */
async function tables(environment) {
  const place = await optional(get(`/v1/environments/${encodeURIComponent(environment)}`));
  // To ask for the schema of a database that is not there would make it.
  if (place?.database_state !== "ready") return [];
  const found = await optional(get("/v1/sql/schema"));
  return (found?.tables ?? []).map((/** @type {any} */ { schema, name }) =>
    command("Table", schema === "public" ? name : `${schema}.${name}`, "tables", { schema, table: name }),
  );
}

async function savedQueries() {
  const rows = (await optional(list("/v1/sql/queries"))) ?? [];
  return rows.map((/** @type {any} */ { id, name }) => command("Saved query", name, "sql", { saved: id }));
}

/**
 * @param {string} kind
 * @param {string} name
 * @param {string} page
 * @param {Record<string, string>} query of the page's address
 * @returns {Command}
 */
function command(kind, name, page, query) {
  return { kind, name, run: () => location.assign(`/console/${page}?${new URLSearchParams(query)}`) };
}
