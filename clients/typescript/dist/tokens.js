/** Where a signed-in client keeps its tokens, and their renewal. */
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
     * Replace an expired token; return whether there is another one now.
     *
     * The clock of this machine is not asked: the platform says when a token has expired.
     */
    async renew(refused, refresh) {
        if (this.fixed !== undefined)
            return false;
        if ((await this.token()) !== refused)
            return true;
        this.renewing ?? (this.renewing = this.replace(refused, refresh).finally(() => {
            this.renewing = undefined;
        }));
        return this.renewing;
    }
    async replace(refused, refresh) {
        let newest = await this.store.load();
        if (newest === undefined)
            return false;
        if (newest.access_token === refused) {
            newest = await refresh(newest.refresh_token);
            await this.store.save(newest);
        }
        this.pair = newest;
        return true;
    }
}
