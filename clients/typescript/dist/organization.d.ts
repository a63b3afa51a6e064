/** Environments, members, invitations and API keys. */
import type { Transport } from "./transport.js";
import type { ApiKey, ChangedMember, Environment, EnvironmentDetail, Invitation, Member, NewApiKey, RemovedMember, Role, Scope } from "./types.js";
/** `live`, `sandbox` and the organization's own. */
export declare class Environments {
    private readonly transport;
    constructor(transport: Transport);
    /** Return all of them. */
    list(): AsyncGenerator<Environment>;
    /** Return one by its id or name, with the state of its database. */
    get(environment: string): Promise<EnvironmentDetail>;
    /** Make one, empty or with a copy of another one's data. */
    create(name: string, options?: {
        id?: string;
        copyOf?: string;
    }): Promise<EnvironmentDetail>;
    /** Change its name; the id stays. */
    rename(environment: string, name: string): Promise<EnvironmentDetail>;
    /** Delete one with its data and its sessions. */
    delete(environment: string): Promise<void>;
}
/** Who belongs to the organization, and who is invited. */
export declare class Members {
    private readonly transport;
    constructor(transport: Transport);
    /** Return the members that the filters leave. */
    list(filters?: {
        email?: string;
        role?: Role;
        label?: string;
        disabled?: boolean;
    }): AsyncGenerator<Member>;
    /** Return one. */
    get(userId: string): Promise<Member>;
    /** Change what is given; `created` lists the keys that have ended with the admin role. */
    update(userId: string, changes: {
        roles?: Role[];
        labels?: string[];
        disabled?: boolean;
    }): Promise<ChangedMember>;
    /** Remove one from the organization; its sessions end, and the keys that it created. */
    remove(userId: string): Promise<RemovedMember>;
    /** Mail an invitation. */
    invite(email: string, roles: Role[], labels?: string[]): Promise<Invitation>;
    /** Return the invitations that the filters leave. */
    invitations(filters?: {
        email?: string;
        state?: string;
    }): AsyncGenerator<Invitation>;
    /** Withdraw an invitation: its link ends. */
    revokeInvitation(invitationId: string): Promise<void>;
}
/** The environment's API keys; an admin's session makes and revokes them, no key does. */
export declare class ApiKeys {
    private readonly transport;
    constructor(transport: Transport);
    /** Return keys without their texts. */
    list(filters?: {
        state?: "active" | "expired" | "revoked";
    }): AsyncGenerator<ApiKey>;
    /** Make a key; only this answer has its text. */
    create(name: string, options: {
        role: Role;
        scopes?: Scope[];
        expiresInDays?: number;
    }): Promise<NewApiKey>;
    /** End a key; its next request is refused. */
    revoke(keyId: string): Promise<void>;
}
