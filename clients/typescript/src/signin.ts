/** Sign-in with a password and a second factor. */

import { EnrolmentRequiredError, ProblemError, SecondFactorRequiredError } from "./errors.js";
import type { Transport } from "./transport.js";
import type { Challenge, LoginAnswer } from "./types.js";

/** Asked for the code of a challenge. */
export type SecondFactor = (challenge: Challenge) => string | Promise<string>;

export interface Proof {
  /** Called if the account has a second factor; returns the code. */
  secondFactor?: SecondFactor;
  /** Such as `totp`; the user's default without it. */
  method?: string;
  /** How often it is asked after wrong codes; 1 without it. */
  attempts?: number;
}

type LoginResult =
  | LoginAnswer
  | { status: "mfa_required"; mfa_token: string; methods: { method: string }[] }
  | { status: "mfa_enrollment_required" };

const WRONG_CODE = new Set(["invalid_code", "malformed_code"]);

/** Return the answer of a finished sign-in. */
export async function signIn(
  transport: Transport,
  email: string,
  password: string,
  options: Proof & { environment?: string },
): Promise<LoginAnswer> {
  let answer = await transport.call<LoginResult>({
    method: "POST",
    path: "/v1/auth/login",
    body: { email, password, environment: options.environment },
    isAnonymous: true,
  });
  if (answer.status === "mfa_required") {
    if (options.secondFactor === undefined) {
      throw new SecondFactorRequiredError(answer.methods.map((each) => each.method));
    }
    answer = await prove<LoginResult>(transport, options.secondFactor, options, answer.mfa_token);
  }
  if (answer.status !== "authenticated") {
    throw new EnrolmentRequiredError(
      "The organization requires a second factor: set one up in the console, then sign in.",
    );
  }
  return answer;
}

/** Answer a challenge; a wrong code is asked for again while attempts are left. */
export async function prove<T>(
  transport: Transport,
  secondFactor: SecondFactor,
  options: Proof,
  token?: string,
): Promise<T> {
  const challenge = await transport.call<Challenge>({
    method: "GET",
    path: "/v1/auth/2fa/challenge",
    params: { method: options.method },
    token,
  });
  const path = `/v1/auth/2fa/challenge/${encodeURIComponent(challenge.challenge_id)}/verify`;
  for (let left = options.attempts ?? 1; ; left--) {
    const code = await secondFactor(challenge);
    try {
      return await transport.call<T>({ method: "POST", path, body: { code }, isAnonymous: true });
    } catch (error) {
      const isWrong = error instanceof ProblemError && WRONG_CODE.has(error.code);
      if (!isWrong || left <= 1) throw error;
    }
  }
}
