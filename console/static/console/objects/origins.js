// @ts-check
/** Origins: where buckets fetch objects from. */

import { call, get, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { restoreDraft } from "../lib/drafts.js";
import { clearProblem, onPress, onSubmit } from "../lib/forms.js";
import { announce } from "../lib/status.js";
import { StoredForm, textField } from "../lib/stored.js";

const PATH = "/v1/cache/origins";

/** @typedef {{name: string, label: string, optional?: boolean, isSecret?: boolean}} Field */

/** @type {Record<string, Field[]>} by kind, as docs/cache.md lists them */
const FIELDS = {
  http: [
    { name: "config.url", label: "URL" },
    { name: "secret.authorization", label: "Authorization header", optional: true, isSecret: true },
  ],
  s3: [
    { name: "config.bucket", label: "Bucket" },
    { name: "config.region", label: "Region" },
    { name: "config.endpoint", label: "Endpoint", optional: true },
    { name: "secret.access_key_id", label: "Access key id", optional: true },
    { name: "secret.secret_access_key", label: "Secret access key", optional: true, isSecret: true },
  ],
  gcs: [
    { name: "config.bucket", label: "Bucket" },
    { name: "secret.access_key_id", label: "HMAC access key", optional: true },
    { name: "secret.secret_access_key", label: "HMAC secret", optional: true, isSecret: true },
  ],
};

const NUMBERS = ["connect_timeout_s", "first_byte_timeout_s", "idle_timeout_s", "connections"];

let mayChange = false;
/** The origin that the open form changes. */
let changed = "";
/** @type {StoredForm} */
let options;

/** @param {boolean} isAdmin */
export function bindOrigins(isAdmin) {
  mayChange = isAdmin;
  const dialog = /** @type {HTMLDialogElement} */ (byId("origin-dialog"));
  const form = /** @type {HTMLFormElement} */ (byId("origin-form"));
  const kind = /** @type {HTMLSelectElement} */ (byId("origin-kind"));
  const showFields = () => byId("origin-fields").replaceChildren(...FIELDS[kind.value].map(fieldOf));
  kind.addEventListener("change", showFields);
  byId("origin-new").addEventListener("click", () => {
    form.reset();
    // First the kind, whose fields come next.
    restoreDraft(form);
    showFields();
    restoreDraft(form);
    dialog.showModal();
  });
  dialog.addEventListener("close", () => byId("origin-fields").replaceChildren());
  onSubmit(form, async (values) => {
    await post(PATH, { name: values.name, kind: values.kind, config: part(values, "config"), ...secretOf(values) });
    dialog.close();
    announce(`${values.name} is created.`);
    await showOrigins();
  });
  bindSecrets();
  bindOptions();
}

/** Bind the form of one origin's options. */
function bindOptions() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("origin-options-dialog"));
  const form = /** @type {HTMLFormElement} */ (byId("origin-options-form"));
  const numbers = NUMBERS.map((name) => [name, numberField(within(form, `[name="${name}"]`))]);
  options = new StoredForm(form, { ...Object.fromEntries(numbers), host: textField(within(form, '[name="host"]')) });
  onSubmit(form, async () => {
    const saved = await options.save("PATCH", pathOf(changed));
    dialog.close();
    announce(saved ? `The options of ${changed} are saved.` : "Nothing is changed.");
    await showOrigins();
  });
}

/** @param {string} name */
async function openOptions(name) {
  const origin = await get(pathOf(name));
  changed = name;
  byId("origin-options-title").textContent = `Options of ${changed}`;
  const form = /** @type {HTMLFormElement} */ (byId("origin-options-form"));
  clearProblem(form);
  options.show(origin);
  show(byId("origin-host-group"), origin.kind === "http");
  /** @type {HTMLDialogElement} */ (byId("origin-options-dialog")).showModal();
}

/** Bind the form of one origin's new credentials. */
function bindSecrets() {
  const dialog = /** @type {HTMLDialogElement} */ (byId("secret-dialog"));
  dialog.addEventListener("close", () => byId("secret-fields").replaceChildren());
  onSubmit(/** @type {HTMLFormElement} */ (byId("secret-form")), async (values) => {
    const { secret } = secretOf(values);
    if (!secret) await confirm(`Read ${changed} without credentials?`, "Buckets that use it show only what is public there.", "Remove credentials");
    await call("PATCH", pathOf(changed), { secret: secret ?? null });
    dialog.close();
    announce(`${changed} ${secret ? "has new credentials" : "is read without credentials"}.`);
    await showOrigins();
  });
}

/** @param {{name: string, kind: string}} origin */
async function openSecrets({ name, kind }) {
  changed = name;
  byId("secret-dialog-title").textContent = `New credentials of ${name}`;
  const form = /** @type {HTMLFormElement} */ (byId("secret-form"));
  clearProblem(form);
  const fields = FIELDS[kind].filter((field) => field.name.startsWith("secret."));
  byId("secret-fields").replaceChildren(...fields.map(fieldOf));
  /** @type {HTMLDialogElement} */ (byId("secret-dialog")).showModal();
}

export async function showOrigins() {
  const { results } = await get(PATH);
  const list = byId("origin-list");
  list.replaceChildren(...results.map(row));
  if (!results.length) list.append(element("li", "There are none."));
}

/** @param {any} origin */
function row(origin) {
  const made = stamp("origin-row");
  const where = Object.values(origin.config).join(", ");
  const how = origin.has_secret ? "with credentials" : "without credentials";
  const by = origin.created_by ? `, by ${origin.created_by}` : "";
  fill(made, { name: origin.name, about: `${origin.kind}: ${where}, ${how}${by}` });
  show(within(made, ".actions"), mayChange);
  const [change, secrets, remove] = ["options", "secrets", "remove"].map((name) => within(made, `[data-action="${name}"]`));
  change.setAttribute("aria-label", `Change the options of ${origin.name}`);
  onPress(change, byId("origins"), () => openOptions(origin.name));
  secrets.setAttribute("aria-label", `Replace the credentials of ${origin.name}`);
  onPress(secrets, byId("origins"), () => openSecrets(origin));
  remove.setAttribute("aria-label", `Remove ${origin.name}`);
  onPress(remove, byId("origins"), async () => {
    await confirm(`Remove ${origin.name}?`, "Only an origin that no bucket uses can be removed.", "Remove");
    await call("DELETE", pathOf(origin.name));
    announce(`${origin.name} is removed.`);
    await showOrigins();
  });
  return made;
}

/**
 * @param {HTMLElement} input
 * @returns {import("../lib/stored.js").Field}
 */
function numberField(input) {
  const field = textField(input);
  return { read: () => (field.read() === "" ? null : Number(field.read())), write: (number) => field.write(String(number)) };
}

/** @param {Field} field */
function fieldOf({ name, label, optional, isSecret }) {
  const made = stamp("origin-field");
  const input = /** @type {HTMLInputElement} */ (within(made, "input"));
  const id = `origin-${name.replace(".", "-")}`;
  fill(made, { label, optional: optional ? "optional" : "" });
  within(made, "label").setAttribute("for", id);
  within(made, ".error").id = `${id}-error`;
  input.id = id;
  input.name = name;
  input.required = !optional;
  input.setAttribute("aria-describedby", `${id}-error`);
  if (isSecret) input.type = "password";
  if (isSecret) input.autocomplete = "new-password";
  return made;
}

/**
 * Return the given fields of a part, by their own names.
 * @param {Record<string, string>} values
 * @param {"config" | "secret"} name
 */
function part(values, name) {
  const entries = Object.entries(values).filter(([field, value]) => field.startsWith(`${name}.`) && value);
  return Object.fromEntries(entries.map(([field, value]) => [field.slice(name.length + 1), value]));
}

/** @param {Record<string, string>} values */
function secretOf(values) {
  const secret = part(values, "secret");
  return Object.keys(secret).length ? { secret } : {};
}

/** @param {string} name */
function pathOf(name) {
  return `${PATH}/${encodeURIComponent(name)}`;
}
