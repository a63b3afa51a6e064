/** The client: one object for a platform and a session. */
import { AccessKeys, Buckets, Cache } from "./cache.js";
import { ApiKeys, Environments, Members } from "./organization.js";
import type { Retries } from "./retries.js";
import type { Proof, SecondFactor } from "./signin.js";
import { Sql } from "./sql.js";
import type { TokenStore } from "./tokens.js";
import type { LoginAnswer, OrganizationUsage, Permissions, Whoami } from "./types.js";
export interface ClientOptions {
    /** Sent as it is, such as an API key. */
    token?: string;
    /** Where tokens of a sign-in are kept; in memory without one. */
    store?: TokenStore;
    retries?: Retries;
    /** For the beginning of an answer; 60 seconds without it, longer than any statement may run. */
    timeoutMs?: number;
    /** Send tokens in clear to other machines, too. */
    allowHttp?: boolean;
    /** In place of the runtime's own. */
    fetch?: typeof fetch;
}
/** A platform, as one user or machine sees it. */
export declare class Client {
    readonly sql: Sql;
    readonly environments: Environments;
    readonly members: Members;
    readonly apiKeys: ApiKeys;
    readonly buckets: Buckets;
    readonly accessKeys: AccessKeys;
    readonly cache: Cache;
    private readonly transport;
    constructor(baseUrl: string, options?: ClientOptions);
    /** Sign in; later requests are the session's. */
    signIn(email: string, password: string, options?: Proof & {
        environment?: string;
    }): Promise<LoginAnswer>;
    /** End the session. */
    signOut(): Promise<void>;
    /** Go on in another environment, with another session of the same sign-in. */
    switch(environment: string): Promise<void>;
    /** Prove the second factor again, for what is refused with `step_up_required`. */
    stepUp(secondFactor: SecondFactor, options?: {
        method?: string;
        attempts?: number;
    }): Promise<void>;
    /** Prove the password again, for what is refused so where no second factor is active. */
    reauthenticate(password: string): Promise<void>;
    /** Return who the token belongs to, and where. */
    whoami(): Promise<Whoami>;
    /** Return what the caller may do. */
    permissions(): Promise<Permissions>;
    /** Return what the organization used and what it cost, by day; days as `2026-11-01`. */
    usage(days?: {
        since?: string;
        until?: string;
    }): Promise<OrganizationUsage>;
    /** Return the JSON of any operation of the API: `request("GET", "/v1/audit")`. */
    request<T = unknown>(method: string, path: string, options?: {
        body?: unknown;
        params?: Record<string, string | number | boolean>;
    }): Promise<T>;
    private keep;
}
