/** Where a signed-in client keeps its tokens, and their renewal. */
import { AuthenticationError, ZonalError } from "./errors.js";
/** Tokens of this process; onChange is called with each new pair, to keep it elsewhere. */
export class MemoryStore {
    constructor(tokens, onChange) {
        this.tokens = tokens;
        this.onChange = onChange;
    }
    load() {
        return this.tokens;
    }
    async save(tokens) {
        this.tokens = tokens;
        await this.onChange?.(tokens);
    }
}
/** The access token of a client; one refresh at a time, however many requests wait for it. */
export class Credentials {
    constructor(fixed, store) {
        this.fixed = fixed;
        this.store = store;
        this.isLoaded = false;
    }
    /** Return the bearer token, undefined while signed out. */
    async token() {
        return this.fixed ?? (await this.session())?.access_token;
    }
    /** Return the session's tokens, undefined with a fixed token. */
    async session() {
        if (!this.isLoaded && this.fixed === undefined) {
            this.pair = await this.store.load();
            this.isLoaded = true;
        }
        return this.pair;
    }
    /** Use and store a session's tokens from now on; undefined signs out. */
    async keep(pair) {
        this.fixed = undefined;
        this.isLoaded = true;
        await this.store.save(pair);
        this.pair = pair;
    }
    /**
     * Return what a function makes of the stored refresh token, for a switch or the end.
     *
     * Throws ZonalError without a session.
     */
    async spend(use) {
        const pair = this.fixed === undefined ? await this.store.load() : undefined;
        if (pair === undefined)
            throw new ZonalError("This client has no session of a sign-in.");
        try {
            return await use(pair.refresh_token);
        }
        catch (error) {
            return await use((await this.storedSince(pair, error)).refresh_token);
        }
    }
    /**
     * Replace a refused token; return whether there is another one now.
     *
     * isSuperseded: true if a newer one has replaced it: the stored pair is used, and an older refresh
     * token is not sent, which would end the sign-in.
     *
     * The clock of this machine is not asked: the platform says when a token has expired.
     */
    async renew(refused, refresh, isSuperseded) {
        if (this.fixed !== undefined)
            return false;
        if ((await this.token()) !== refused)
            return true;
        this.renewing ?? (this.renewing = this.replace(refused, refresh, isSuperseded).finally(() => {
            this.renewing = undefined;
        }));
        return this.renewing;
    }
    async replace(refused, refresh, isSuperseded) {
        let newest = await this.store.load();
        if (newest === undefined)
            return false;
        if (newest.access_token === refused) {
            if (isSuperseded)
                return false;
            newest = await this.refreshed(newest, refresh);
        }
        this.pair = newest;
        return true;
    }
    async refreshed(pair, refresh) {
        let newest;
        try {
            newest = await refresh(pair.refresh_token);
        }
        catch (error) {
            return this.storedSince(pair, error);
        }
        await this.store.save(newest);
        return newest;
    }
    /** Return the pair that another process has stored meanwhile; else throw the refusal. */
    async storedSince(pair, error) {
        if (!(error instanceof AuthenticationError) || error.code !== "token_superseded")
            throw error;
        const newest = await this.store.load();
        if (newest === undefined || newest.refresh_token === pair.refresh_token)
            throw error;
        return newest;
    }
}
