// @ts-check
/** Labels of the second factors, as the API gives them. */

import { get } from "../lib/api.js";
import { Problem } from "../lib/problem.js";

/** By the name in lists of methods and by the name in challenges. @type {Map<string, string>} */
const labels = new Map();

/** Load the labels; without them a factor is shown by its name. */
export async function loadFactorLabels() {
  if (labels.size) return;
  const answer = await get("/v1/auth/2fa/factors").catch((error) => {
    if (error instanceof Problem) return { factors: [] };
    throw error;
  });
  for (const { name, challenge_name, label } of answer.factors) {
    labels.set(name, label).set(challenge_name, label);
  }
}

/** @param {string} name */
export function factorLabel(name) {
  return labels.get(name) ?? name;
}
