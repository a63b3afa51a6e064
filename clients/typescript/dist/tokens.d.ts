/** Where a signed-in client keeps its tokens, and their renewal. */
import type { TokenPair } from "./types.js";
/**
 * What a client reads its tokens from and writes them to; several processes may share one.
 *
 * A refresh token works once. A client therefore loads before it refreshes, in case that another one
 * has refreshed meanwhile, and saves before it uses the new pair.
 */
export interface TokenStore {
    /** Return the newest pair, undefined while signed out. */
    load(): TokenPair | undefined | Promise<TokenPair | undefined>;
    /** Keep a pair in place of the last one; undefined after a sign-out. */
    save(tokens: TokenPair | undefined): void | Promise<void>;
}
/** Tokens of this process; onChange is called with each new pair, to keep it elsewhere. */
export declare class MemoryStore implements TokenStore {
    private tokens?;
    private readonly onChange?;
    constructor(tokens?: TokenPair | undefined, onChange?: ((tokens: TokenPair | undefined) => void | Promise<void>) | undefined);
    load(): TokenPair | undefined;
    save(tokens: TokenPair | undefined): Promise<void>;
}
/** The access token of a client; one refresh at a time, however many requests wait for it. */
export declare class Credentials {
    private fixed;
    private readonly store;
    private pair;
    private isLoaded;
    private renewing;
    constructor(fixed: string | undefined, store: TokenStore);
    /** Return the bearer token, undefined while signed out. */
    token(): Promise<string | undefined>;
    /** Return the session's tokens, undefined with a fixed token. */
    session(): Promise<TokenPair | undefined>;
    /** Use and store a session's tokens from now on; undefined signs out. */
    keep(pair: TokenPair | undefined): Promise<void>;
    /**
     * Return what a function makes of the stored refresh token, for a switch or the end.
     *
     * Throws ZonalError without a session.
     */
    spend<T>(use: (refreshToken: string) => Promise<T>): Promise<T>;
    /**
     * Replace a refused token; return whether there is another one now.
     *
     * isSuperseded: true if a newer one has replaced it: the stored pair is used, and an older refresh
     * token is not sent, which would end the sign-in.
     *
     * The clock of this machine is not asked: the platform says when a token has expired.
     */
    renew(refused: string | undefined, refresh: (refreshToken: string) => Promise<TokenPair>, isSuperseded: boolean): Promise<boolean>;
    private replace;
    private refreshed;
    /** Return the pair that another process has stored meanwhile; else throw the refusal. */
    private storedSince;
}
