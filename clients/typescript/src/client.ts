/** The client: one object for a platform and a session. */

import { AccessKeys, Buckets, Cache } from "./cache.js";
import { ZonalError } from "./errors.js";
import { ApiKeys, Environments, Members } from "./organization.js";
import type { Retries } from "./retries.js";
import { prove, signIn } from "./signin.js";
import type { Proof, SecondFactor } from "./signin.js";
import { Sql } from "./sql.js";
import { Credentials, MemoryStore } from "./tokens.js";
import type { TokenStore } from "./tokens.js";
import { Transport } from "./transport.js";
import type { LoginAnswer, OrganizationUsage, Permissions, TokenPair, Whoami } from "./types.js";

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
export class Client {
  readonly sql: Sql;
  readonly environments: Environments;
  readonly members: Members;
  readonly apiKeys: ApiKeys;
  readonly buckets: Buckets;
  readonly accessKeys: AccessKeys;
  readonly cache: Cache;
  private readonly transport: Transport;

  constructor(baseUrl: string, options: ClientOptions = {}) {
    const fetcher = options.fetch ?? fetch;
    this.transport = new Transport(
      checked(baseUrl, options.allowHttp === true),
      new Credentials(options.token, options.store ?? new MemoryStore()),
      options.retries ?? {},
      options.timeoutMs ?? 60_000,
      // A browser's fetch is a method of its window.
      (input, init) => fetcher(input, init),
    );
    this.sql = new Sql(this.transport);
    this.environments = new Environments(this.transport);
    this.members = new Members(this.transport);
    this.apiKeys = new ApiKeys(this.transport);
    this.buckets = new Buckets(this.transport);
    this.accessKeys = new AccessKeys(this.transport);
    this.cache = new Cache(this.transport);
  }

  /** Sign in; later requests are the session's. */
  async signIn(
    email: string,
    password: string,
    options: Proof & { environment?: string } = {},
  ): Promise<LoginAnswer> {
    const answer = await signIn(this.transport, email, password, options);
    await this.keep(answer);
    return answer;
  }

  /** End the session. */
  async signOut(): Promise<void> {
    const path = "/v1/auth/logout";
    await this.transport.credentials.spend((refresh_token) =>
      this.transport.call({ method: "POST", path, body: { refresh_token }, isAnonymous: true }),
    );
    await this.transport.credentials.keep(undefined);
  }

  /** Go on in another environment, with another session of the same sign-in. */
  async switch(environment: string): Promise<void> {
    const path = "/v1/auth/switch";
    const answer = await this.transport.credentials.spend((refresh_token) => {
      const body = { refresh_token, environment };
      return this.transport.call<TokenPair>({ method: "POST", path, body, isAnonymous: true });
    });
    await this.keep(answer);
  }

  /** Prove the second factor again, for what is refused with `step_up_required`. */
  async stepUp(
    secondFactor: SecondFactor,
    options: { method?: string; attempts?: number } = {},
  ): Promise<void> {
    await prove(this.transport, secondFactor, options);
  }

  /** Prove the password again, for what is refused so where no second factor is active. */
  async reauthenticate(password: string): Promise<void> {
    const path = "/v1/auth/reauthenticate";
    await this.transport.call({ method: "POST", path, body: { password } });
  }

  /** Return who the token belongs to, and where. */
  whoami(): Promise<Whoami> {
    return this.transport.call({ method: "GET", path: "/v1/whoami" });
  }

  /** Return what the caller may do. */
  permissions(): Promise<Permissions> {
    return this.transport.call({ method: "GET", path: "/v1/permissions/effective" });
  }

  /** Return what the organization used and what it cost, by day; days as `2026-11-01`. */
  usage(days: { since?: string; until?: string } = {}): Promise<OrganizationUsage> {
    return this.transport.call({ method: "GET", path: "/v1/usage", params: days });
  }

  /** Return the JSON of any operation of the API: `request("GET", "/v1/audit")`. */
  async request<T = unknown>(
    method: string,
    path: string,
    options: { body?: unknown; params?: Record<string, string | number | boolean> } = {},
  ): Promise<T> {
    // A full URL would carry the token to another host.
    if (!path.startsWith("/") || path.startsWith("//")) {
      throw new ZonalError("A path of the API begins with one slash.");
    }
    return this.transport.call<T>({ method: method.toUpperCase(), path, ...options });
  }

  private async keep(answer: TokenPair): Promise<void> {
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
function checked(url: string, allowHttp: boolean): string {
  let parts: URL;
  try {
    parts = new URL(url);
  } catch {
    throw new ZonalError(`${url} is no URL of a platform, such as https://zonal.example.com.`);
  }
  if (!["http:", "https:"].includes(parts.protocol) || parts.username || parts.search || parts.hash) {
    throw new ZonalError("The platform's URL is https, without user, query or fragment.");
  }
  if (parts.protocol === "http:" && !allowHttp && !isLoopback(parts.hostname)) {
    throw new ZonalError(
      `http://${parts.hostname} would carry tokens in clear: use https, or allowHttp.`,
    );
  }
  return url.replace(/\/+$/, "");
}

function isLoopback(host: string): boolean {
  return (
    host === "localhost" ||
    host.endsWith(".localhost") ||
    host === "[::1]" ||
    /^127\.\d+\.\d+\.\d+$/.test(host)
  );
}
