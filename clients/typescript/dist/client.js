/** The client: one object for a platform and a session. */
import { AccessKeys, Buckets, Cache } from "./cache.js";
import { ZonalError } from "./errors.js";
import { ApiKeys, Environments, Members } from "./organization.js";
import { prove, signIn } from "./signin.js";
import { Sql } from "./sql.js";
import { Credentials, MemoryStore } from "./tokens.js";
import { Transport } from "./transport.js";
/** A platform, as one user or machine sees it. */
export class Client {
    constructor(baseUrl, options = {}) {
        const fetcher = options.fetch ?? fetch;
        this.transport = new Transport(checked(baseUrl, options.allowHttp === true), new Credentials(options.token, options.store ?? new MemoryStore()), options.retries ?? {}, options.timeoutMs ?? 60000, 
        // A browser's fetch is a method of its window.
        (input, init) => fetcher(input, init));
        this.sql = new Sql(this.transport);
        this.environments = new Environments(this.transport);
        this.members = new Members(this.transport);
        this.apiKeys = new ApiKeys(this.transport);
        this.buckets = new Buckets(this.transport);
        this.accessKeys = new AccessKeys(this.transport);
        this.cache = new Cache(this.transport);
    }
    /** Sign in; later requests are the session's. */
    async signIn(email, password, options = {}) {
        const answer = await signIn(this.transport, email, password, options);
        await this.keep(answer);
        return answer;
    }
    /** End the session. */
    async signOut() {
        const path = "/v1/auth/logout";
        await this.transport.credentials.spend((refresh_token) => this.transport.call({ method: "POST", path, body: { refresh_token }, isAnonymous: true }));
        await this.transport.credentials.keep(undefined);
    }
    /** Go on in another environment, with another session of the same sign-in. */
    async switch(environment) {
        const path = "/v1/auth/switch";
        const answer = await this.transport.credentials.spend((refresh_token) => {
            const body = { refresh_token, environment };
            return this.transport.call({ method: "POST", path, body, isAnonymous: true });
        });
        await this.keep(answer);
    }
    /** Prove the second factor again, for what is refused with `step_up_required`. */
    async stepUp(secondFactor, options = {}) {
        await prove(this.transport, secondFactor, options);
    }
    /** Prove the password again, for what is refused so where no second factor is active. */
    async reauthenticate(password) {
        const path = "/v1/auth/reauthenticate";
        await this.transport.call({ method: "POST", path, body: { password } });
    }
    /** Return who the token belongs to, and where. */
    whoami() {
        return this.transport.call({ method: "GET", path: "/v1/whoami" });
    }
    /** Return what the caller may do. */
    permissions() {
        return this.transport.call({ method: "GET", path: "/v1/permissions/effective" });
    }
    /** Return what the organization used and what it cost, by day; days as `2026-11-01`. */
    usage(days = {}) {
        return this.transport.call({ method: "GET", path: "/v1/usage", params: days });
    }
    /** Return the JSON of any operation of the API: `request("GET", "/v1/audit")`. */
    async request(method, path, options = {}) {
        // A full URL would carry the token to another host.
        if (!path.startsWith("/") || path.startsWith("//")) {
            throw new ZonalError("A path of the API begins with one slash.");
        }
        return this.transport.call({ method: method.toUpperCase(), path, ...options });
    }
    async keep(answer) {
        const { access_token, refresh_token, access_expires_at, refresh_expires_at } = answer;
        await this.transport.credentials.keep({
            access_token,
            refresh_token,
            access_expires_at,
            refresh_expires_at,
        });
    }
}
/** Return a URL that tokens may be sent to. */
function checked(url, allowHttp) {
    let parts;
    try {
        parts = new URL(url);
    }
    catch {
        throw new ZonalError(`${url} is no URL of a platform, such as https://zonal.example.com.`);
    }
    if (!["http:", "https:"].includes(parts.protocol) || parts.username || parts.search || parts.hash) {
        throw new ZonalError("The platform's URL is https, without user, query or fragment.");
    }
    if (parts.protocol === "http:" && !allowHttp && !isLoopback(parts.hostname)) {
        throw new ZonalError(`http://${parts.hostname} would carry tokens in clear: use https, or allowHttp.`);
    }
    return url.replace(/\/+$/, "");
}
function isLoopback(host) {
    return (host === "localhost" ||
        host.endsWith(".localhost") ||
        host === "[::1]" ||
        /^127\.\d+\.\d+\.\d+$/.test(host));
}
