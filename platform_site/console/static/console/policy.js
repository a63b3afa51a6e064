// @ts-check
/** The organization's policy on second factors, and who does not fulfil it yet. */

import { call, get } from "./api.js";
import { byId, fill, show, stamp, within } from "./dom.js";
import { factorLabel, loadFactorLabels } from "./factors.js";
import { onSubmit } from "./forms.js";
import { moment } from "./format.js";
import { bindReveals } from "./reveal.js";
import { openPage } from "./shell.js";
import { announce } from "./status.js";

const METHODS = ["totp", "webauthn", "sms", "email", "backup_codes"];
const PATH = "/v1/auth/2fa/policy";

await openPage(async (who) => {
  const isAdmin = who.roles.includes("admin");
  bindReveals();
  await loadFactorLabels();
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
  const form = /** @type {HTMLFormElement} */ (byId("policy-form"));
  onSubmit(form, async (values) => {
    const given = new FormData(form);
    const body = {
      required: given.has("required"),
      allowed_methods: given.getAll("allowed_methods"),
      grace_period_days: Number(values.grace_period_days),
    };
    showPolicy(await call("PUT", PATH, body));
    await showMembers();
    announce("The policy is saved.");
  });
}

/** @param {any} policy */
function showPolicy(policy) {
  /** @type {HTMLInputElement} */ (byId("policy-required")).checked = policy.required;
  /** @type {HTMLInputElement} */ (byId("grace")).value = String(policy.grace_period_days);
  byId("allowed").replaceChildren(
    ...METHODS.map((method) => {
      const row = stamp("allowed-row");
      fill(row, { name: factorLabel(method) });
      const box = /** @type {HTMLInputElement} */ (within(row, "input"));
      box.value = method;
      box.checked = policy.allowed_methods.includes(method);
      return row;
    }),
  );
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
