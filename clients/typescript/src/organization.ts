/** Environments, members, invitations and API keys. */

import { listed } from "./listing.js";
import type { Transport } from "./transport.js";
import type {
  ApiKey,
  ChangedMember,
  Environment,
  EnvironmentDetail,
  Invitation,
  Member,
  NewApiKey,
  RemovedMember,
  Role,
  Scope,
} from "./types.js";

const ENVIRONMENTS = "/v1/environments";
const MEMBERS = "/v1/members";
const INVITATIONS = "/v1/invitations";
const API_KEYS = "/v1/api-keys";

/** `live`, `sandbox` and the organization's own. */
export class Environments {
  constructor(private readonly transport: Transport) {}

  /** Return all of them. */
  list(): AsyncGenerator<Environment> {
    return listed(this.transport, ENVIRONMENTS);
  }

  /** Return one by its id or name, with the state of its database. */
  get(environment: string): Promise<EnvironmentDetail> {
    return this.transport.call({ method: "GET", path: at(ENVIRONMENTS, environment) });
  }

  /** Make one, empty or with a copy of another one's data. */
  create(name: string, options: { id?: string; copyOf?: string } = {}): Promise<EnvironmentDetail> {
    const body = { name, id: options.id, from: options.copyOf };
    return this.transport.call({ method: "POST", path: ENVIRONMENTS, body });
  }

  /** Change its name; the id stays. */
  rename(environment: string, name: string): Promise<EnvironmentDetail> {
    const path = at(ENVIRONMENTS, environment);
    return this.transport.call({ method: "PATCH", path, body: { name } });
  }

  /** Delete one with its data and its sessions. */
  delete(environment: string): Promise<void> {
    return this.transport.call({ method: "DELETE", path: at(ENVIRONMENTS, environment) });
  }
}

/** Who belongs to the organization, and who is invited. */
export class Members {
  constructor(private readonly transport: Transport) {}

  /** Return the members that the filters leave. */
  list(
    filters: { email?: string; role?: Role; label?: string; disabled?: boolean } = {},
  ): AsyncGenerator<Member> {
    return listed(this.transport, MEMBERS, filters);
  }

  /** Return one. */
  get(userId: string): Promise<Member> {
    return this.transport.call({ method: "GET", path: at(MEMBERS, userId) });
  }

  /** Change what is given; `created` lists the keys that have ended with the admin role. */
  update(
    userId: string,
    changes: { roles?: Role[]; labels?: string[]; disabled?: boolean },
  ): Promise<ChangedMember> {
    return this.transport.call({ method: "PATCH", path: at(MEMBERS, userId), body: changes });
  }

  /** Remove one from the organization; its sessions end, and the keys that it created. */
  remove(userId: string): Promise<RemovedMember> {
    return this.transport.call({ method: "DELETE", path: at(MEMBERS, userId) });
  }

  /** Mail an invitation. */
  invite(email: string, roles: Role[], labels?: string[]): Promise<Invitation> {
    const body = { email, roles, labels };
    return this.transport.call({ method: "POST", path: INVITATIONS, body });
  }

  /** Return the invitations that the filters leave. */
  invitations(filters: { email?: string; state?: string } = {}): AsyncGenerator<Invitation> {
    return listed(this.transport, INVITATIONS, filters);
  }

  /** Withdraw an invitation: its link ends. */
  revokeInvitation(invitationId: string): Promise<void> {
    return this.transport.call({ method: "DELETE", path: at(INVITATIONS, invitationId) });
  }
}

/** The environment's API keys; an admin's session makes and revokes them, no key does. */
export class ApiKeys {
  constructor(private readonly transport: Transport) {}

  /** Return keys without their texts. */
  list(filters: { state?: "active" | "expired" | "revoked" } = {}): AsyncGenerator<ApiKey> {
    return listed(this.transport, API_KEYS, filters);
  }

  /** Make a key; only this answer has its text. */
  create(
    name: string,
    options: { role: Role; scopes?: Scope[]; expiresInDays?: number },
  ): Promise<NewApiKey> {
    const { role, scopes, expiresInDays } = options;
    const body = { name, role, scopes, expires_in_days: expiresInDays };
    return this.transport.call({ method: "POST", path: API_KEYS, body });
  }

  /** End a key; its next request is refused. */
  revoke(keyId: string): Promise<void> {
    return this.transport.call({ method: "DELETE", path: at(API_KEYS, keyId) });
  }
}

function at(path: string, name: string): string {
  return `${path}/${encodeURIComponent(name)}`;
}
