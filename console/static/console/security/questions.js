// @ts-check
/** Security questions: three chosen ones, answered; the answers are never shown again. */

import { call } from "../lib/api.js";
import { confirm } from "../lib/confirm.js";
import { byId, element, fill, show, stamp, within } from "../lib/dom.js";
import { onPress, onSubmit } from "../lib/forms.js";
import { announce } from "../lib/status.js";

const PATH = "/v1/auth/recovery/questions";
const ASKED = 3;

/** Bind the part; reading the questions takes a recent proof, so it is not done unasked. */
export function bindQuestions() {
  const section = byId("questions");
  const form = /** @type {HTMLFormElement} */ (byId("questions-form"));
  onPress(byId("questions-open"), section, async () => {
    showQuestions(await call("GET", PATH));
    show(byId("questions-open"), false);
  });
  onSubmit(form, async (values) => {
    /** @type {Record<string, string>} */
    const answers = {};
    for (let number = 0; number < ASKED; number += 1) {
      answers[values[`question-${number}`]] = values[`answer-${number}`];
    }
    showQuestions(await call("PUT", PATH, { answers }));
    announce("Your answers are kept.");
  });
  onPress(byId("questions-remove"), form, async () => {
    await confirm("Remove all answers?", "You can still recover by a code that is sent to you.", "Remove");
    showQuestions(await call("PUT", PATH, { answers: {} }));
    announce("Your answers are removed.");
  });
}

/** @param {{enabled: boolean, catalogue: {question_id: string, question: string}[], answered: string[]}} state */
function showQuestions({ enabled, catalogue, answered }) {
  show(byId("questions-part"));
  show(byId("questions-off"), !enabled);
  show(byId("questions-form"), enabled);
  show(byId("questions-remove"), answered.length > 0);
  const form = byId("questions-form");
  fill(form, { state: answered.length ? "You have answered three; new answers replace them." : "" });
  const rows = Array.from({ length: ASKED }, (_, number) => {
    const chosen = answered[number] ?? catalogue[number].question_id;
    return rowOf(number, catalogue, chosen);
  });
  byId("questions-list").replaceChildren(...rows);
}

/**
 * @param {number} number
 * @param {{question_id: string, question: string}[]} catalogue
 * @param {string} chosen
 */
function rowOf(number, catalogue, chosen) {
  const row = stamp("question-row");
  for (const kind of ["question", "answer"]) {
    const field = within(row, `[data-field="${kind}"]`);
    field.id = field.dataset.field + String(number);
    field.setAttribute("name", `${kind}-${number}`);
    const label = within(row, `[data-of="${kind}"]`);
    label.setAttribute("for", field.id);
    label.append(` ${number + 1}`);
  }
  const error = within(row, "[data-error]");
  error.id = `answer${number}-error`;
  within(row, "input").setAttribute("aria-describedby", error.id);
  const select = /** @type {HTMLSelectElement} */ (within(row, "select"));
  select.append(
    ...catalogue.map(({ question_id, question }) => {
      const option = /** @type {HTMLOptionElement} */ (element("option", question));
      option.value = question_id;
      option.selected = question_id === chosen;
      return option;
    }),
  );
  return row;
}
