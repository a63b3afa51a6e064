/** Sign-in with a password and a second factor. */
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
/** Return the answer of a finished sign-in. */
export declare function signIn(transport: Transport, email: string, password: string, options: Proof & {
    environment?: string;
}): Promise<LoginAnswer>;
/** Answer a challenge; a wrong code is asked for again while attempts are left. */
export declare function prove<T>(transport: Transport, secondFactor: SecondFactor, options: Proof, token?: string): Promise<T>;
