/** Where a signed-in client keeps its tokens, and their renewal. */

import { AuthenticationError, ZonalError } from "./errors.js";
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
export class MemoryStore implements TokenStore {
  constructor(
    private tokens?: TokenPair,
    private readonly onChange?: (tokens: TokenPair | undefined) => void | Promise<void>,
  ) {}

  load(): TokenPair | undefined {
    return this.tokens;
  }

  async save(tokens: TokenPair | undefined): Promise<void> {
    this.tokens = tokens;
    await this.onChange?.(tokens);
  }
}

/** The access token of a client; one refresh at a time, however many requests wait for it. */
export class Credentials {
  private pair: TokenPair | undefined;
  private isLoaded = false;
  private renewing: Promise<boolean> | undefined;

  constructor(
    private fixed: string | undefined,
    private readonly store: TokenStore,
  ) {}

  /** Return the bearer token, undefined while signed out. */
  async token(): Promise<string | undefined> {
    return this.fixed ?? (await this.session())?.access_token;
  }

  /** Return the session's tokens, undefined with a fixed token. */
  async session(): Promise<TokenPair | undefined> {
    if (!this.isLoaded && this.fixed === undefined) {
      this.pair = await this.store.load();
      this.isLoaded = true;
    }
    return this.pair;
  }

  /** Use and store a session's tokens from now on; undefined signs out. */
  async keep(pair: TokenPair | undefined): Promise<void> {
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
  async spend<T>(use: (refreshToken: string) => Promise<T>): Promise<T> {
    const pair = this.fixed === undefined ? await this.store.load() : undefined;
    if (pair === undefined) throw new ZonalError("This client has no session of a sign-in.");
    try {
      return await use(pair.refresh_token);
    } catch (error) {
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
  async renew(
    refused: string | undefined,
    refresh: (refreshToken: string) => Promise<TokenPair>,
    isSuperseded: boolean,
  ): Promise<boolean> {
    if (this.fixed !== undefined) return false;
    if ((await this.token()) !== refused) return true;
    this.renewing ??= this.replace(refused, refresh, isSuperseded).finally(() => {
      this.renewing = undefined;
    });
    return this.renewing;
  }

  private async replace(
    refused: string | undefined,
    refresh: (refreshToken: string) => Promise<TokenPair>,
    isSuperseded: boolean,
  ): Promise<boolean> {
    let newest = await this.store.load();
    if (newest === undefined) return false;
    if (newest.access_token === refused) {
      if (isSuperseded) return false;
      newest = await this.refreshed(newest, refresh);
    }
    this.pair = newest;
    return true;
  }

  private async refreshed(
    pair: TokenPair,
    refresh: (refreshToken: string) => Promise<TokenPair>,
  ): Promise<TokenPair> {
    let newest: TokenPair;
    try {
      newest = await refresh(pair.refresh_token);
    } catch (error) {
      return this.storedSince(pair, error);
    }
    await this.store.save(newest);
    return newest;
  }

  /** Return the pair that another process has stored meanwhile; else throw the refusal. */
  private async storedSince(pair: TokenPair, error: unknown): Promise<TokenPair> {
    if (!(error instanceof AuthenticationError) || error.code !== "token_superseded") throw error;
    const newest = await this.store.load();
    if (newest === undefined || newest.refresh_token === pair.refresh_token) throw error;
    return newest;
  }
}
