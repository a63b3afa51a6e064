/** Environments, members, invitations and API keys. */
import { listed } from "./listing.js";
const ENVIRONMENTS = "/v1/environments";
const MEMBERS = "/v1/members";
const INVITATIONS = "/v1/invitations";
const API_KEYS = "/v1/api-keys";
/** `live`, `sandbox` and the organization's own. */
export class Environments {
    constructor(transport) {
        this.transport = transport;
    }
    /** Return all of them. */
    list() {
        return listed(this.transport, ENVIRONMENTS);
    }
    /** Return one by its id or name, with the state of its database. */
    get(environment) {
        return this.transport.call({ method: "GET", path: at(ENVIRONMENTS, environment) });
    }
    /** Make one, empty or with a copy of another one's data. */
    create(name, options = {}) {
        const body = { name, id: options.id, from: options.copyOf };
        return this.transport.call({ method: "POST", path: ENVIRONMENTS, body });
    }
    /** Change its name; the id stays. */
    rename(environment, name) {
        const path = at(ENVIRONMENTS, environment);
        return this.transport.call({ method: "PATCH", path, body: { name } });
    }
    /** Delete one with its data and its sessions. */
    delete(environment) {
        return this.transport.call({ method: "DELETE", path: at(ENVIRONMENTS, environment) });
    }
}
/** Who belongs to the organization, and who is invited. */
export class Members {
    constructor(transport) {
        this.transport = transport;
    }
    /** Return the members that the filters leave. */
    list(filters = {}) {
        return listed(this.transport, MEMBERS, filters);
    }
    /** Return one. */
    get(userId) {
        return this.transport.call({ method: "GET", path: at(MEMBERS, userId) });
    }
    /** Change what is given; `created` lists the keys that have ended with the admin role. */
    update(userId, changes) {
        return this.transport.call({ method: "PATCH", path: at(MEMBERS, userId), body: changes });
    }
    /** Remove one from the organization; its sessions end, and the keys that it created. */
    remove(userId) {
        return this.transport.call({ method: "DELETE", path: at(MEMBERS, userId) });
    }
    /** Mail an invitation. */
    invite(email, roles, labels) {
        const body = { email, roles, labels };
        return this.transport.call({ method: "POST", path: INVITATIONS, body });
    }
    /** Return the invitations that the filters leave. */
    invitations(filters = {}) {
        return listed(this.transport, INVITATIONS, filters);
    }
    /** Withdraw an invitation: its link ends. */
    revokeInvitation(invitationId) {
        return this.transport.call({ method: "DELETE", path: at(INVITATIONS, invitationId) });
    }
}
/** The environment's API keys; an admin's session makes and revokes them, no key does. */
export class ApiKeys {
    constructor(transport) {
        this.transport = transport;
    }
    /** Return keys without their texts. */
    list(filters = {}) {
        return listed(this.transport, API_KEYS, filters);
    }
    /** Make a key; only this answer has its text. */
    create(name, options) {
        const { role, scopes, expiresInDays } = options;
        const body = { name, role, scopes, expires_in_days: expiresInDays };
        return this.transport.call({ method: "POST", path: API_KEYS, body });
    }
    /** End a key; its next request is refused. */
    revoke(keyId) {
        return this.transport.call({ method: "DELETE", path: at(API_KEYS, keyId) });
    }
}
function at(path, name) {
    return `${path}/${encodeURIComponent(name)}`;
}
