// @ts-check
/** The organization's policy on second factors, and who does not fulfil it yet. */

import { get, post } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, fill, show, stamp, within } from "../lib/dom.js";
import { factorLabel, loadFactorLabels } from "../factors/factors.js";
import { onSubmit } from "../lib/forms.js";
import { moment } from "../lib/format.js";
import { bindReveals } from "../lib/reveal.js";
import { openPage } from "../frame/shell.js";
import { announce } from "../lib/status.js";
import { StoredForm, choicesField, switchField, textField } from "../lib/stored.js";

const METHODS = ["totp", "webauthn", "sms", "email", "backup_codes"];
/** Members that the question names. */
const NAMED = 8;
const PATH = "/v1/auth/2fa/policy";

const form = /** @type {HTMLFormElement} */ (byId("policy-form"));
const grace = textField(byId("grace"));
const policyForm = new StoredForm(form, {
  required: switchField(byId("policy-required")),
  allowed_methods: choicesField(form, "allowed_methods"),
  grace_period_days: { read: () => Number(grace.read()), write: (days) => grace.write(String(days)) },
});

await openPage(async (who) => {
  const isAdmin = who.roles.includes("admin");
  bindReveals();
  await loadFactorLabels();
  showMethods();
  showPolicy(await get(PATH));
  /** @type {HTMLFieldSetElement} */ (byId("policy-fields")).disabled = !isAdmin;
  show(byId("policy-readonly"), !isAdmin);
  show(byId("policy-save"), isAdmin);
  if (isAdmin) {
    bind();
    await showMembers();
  }
});

function bind() {
  onSubmit(form, async () => {
    const { changes } = policyForm;
    if (Object.keys(changes).length) await agree(await post(`${PATH}/preview`, changes));
    const saved = await policyForm.save("PUT", PATH);
    if (saved) showPolicy(saved);
    await showMembers();
    announce(saved ? "The policy is saved." : "Nothing is changed.");
  });
}

/**
 * Say whom a change would restrict, and from when on, before it is saved.
 * @param {any} preview
 * @throws {import("../lib/problem.js").Cancelled}
 */
async function agree({ affected, affected_members: count, trusted_devices: devices }) {
  const effects = [];
  if (count) effects.push(`${members(count)} no second factor that the policy allows.`, ...affected.slice(0, NAMED).map(effectOf));
  if (count > NAMED) effects.push(`And ${count - NAMED} more.`);
  if (devices) effects.push(`${devices === 1 ? "One trusted device ends" : `${devices} trusted devices end`}: its user needs the second factor at the next sign-in.`);
  if (effects.length) await confirm("Save this policy?", effects.join("\n"), "Save the policy");
}

/** @param {number} count */
function members(count) {
  return count === 1 ? "One member has" : `${count} members have`;
}

/** @param {{email: string | null, user_id: string, restricted_from: number, at_once: boolean}} member */
function effectOf({ email, user_id, restricted_from, at_once }) {
  const from = at_once ? "immediately" : `from ${moment(restricted_from)} on`;
  return `${email ?? user_id} can only set one up, ${from}.`;
}

function showMethods() {
  byId("allowed").replaceChildren(
    ...METHODS.map((method) => {
      const row = stamp("allowed-row");
      fill(row, { name: factorLabel(method) });
      /** @type {HTMLInputElement} */ (within(row, "input")).value = method;
      return row;
    }),
  );
}

/** @param {any} policy */
function showPolicy(policy) {
  policyForm.show(policy);
  const changed = policy.updated_at ? `Last changed ${moment(policy.updated_at)}.` : "Never changed.";
  const ends = policy.grace_ends_at ? ` In force from ${moment(policy.grace_ends_at)} on.` : "";
  byId("policy-updated").textContent = changed + ends;
}

async function showMembers() {
  const state = await get("/v1/auth/2fa/compliance?scope=organization");
  const section = byId("members");
  show(section);
  const have = `${state.compliant_members} of ${state.members}`;
  const ending = state.missing.length ? " Missing:" : "";
  fill(section, { members: `With an allowed second factor: ${have}.${ending}` });
  byId("missing").replaceChildren(
    ...state.missing.map((/** @type {{email: string}} */ { email }) => {
      const row = stamp("missing-row");
      fill(row, { email });
      return row;
    }),
  );
}
