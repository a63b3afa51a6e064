/** Requests to the platform: authorized, repeated where that is safe, refused with typed errors. */

import {
  ConnectionFailedError,
  problemOfResponse,
  UnexpectedAnswerError,
  UnreadableAnswerError,
} from "./errors.js";
import type { ProblemError } from "./errors.js";
import { decoded, encoded } from "./json.js";
import { pauseAfterFailure, pauseAfterProblem } from "./retries.js";
import type { Retries } from "./retries.js";
import type { Credentials } from "./tokens.js";
import type { TokenPair } from "./types.js";

export interface Call {
  method: string;
  path: string;
  body?: unknown;
  /** A body that is no JSON, with its Content-Type among the headers; it can be sent twice. */
  content?: Blob | string | BufferSource;
  params?: Record<string, string | number | boolean | undefined>;
  headers?: Record<string, string | undefined>;
  /** True if a second one changes nothing. */
  isRepeatable?: boolean;
  /** In place of the client's own. */
  token?: string;
  isAnonymous?: boolean;
  /** In place of the client's own. */
  timeoutMs?: number;
  signal?: AbortSignal;
}

const IDEMPOTENT = new Set(["GET", "HEAD", "PUT", "DELETE"]);
// The first may find a pair that another process has stored, and that has expired, too.
const RENEWALS = 2;

export class Transport {
  constructor(
    private readonly base: string,
    readonly credentials: Credentials,
    private readonly retries: Retries,
    private readonly timeoutMs: number,
    private readonly fetcher: typeof fetch,
  ) {}

  /** Return the answer's JSON, undefined if it has no body. */
  async call<T>(call: Call): Promise<T> {
    const response = await this.send(call);
    try {
      const text = await response.text();
      return (text === "" ? undefined : decoded(text)) as T;
    } catch (error) {
      if (call.signal?.aborted) throw error;
      throw this.unread(response, error);
    }
  }

  /** Return the error of a successful answer whose body could not be read. */
  private unread(response: Response, cause: unknown): Error {
    if (cause instanceof SyntaxError) {
      const text = `${this.base} answered ${response.status} without JSON: is it the platform?`;
      return new UnexpectedAnswerError(text, { cause });
    }
    if (isNetworkFailure(cause)) {
      return new ConnectionFailedError(`${this.base} cut its answer: ${String(cause)}`, { cause });
    }
    // Longer than JavaScript's strings, or than the memory.
    return new UnreadableAnswerError(
      `The answer cannot be held (${String(cause)}). The request was carried out: do not repeat it.`,
      { cause },
    );
  }

  /** Return a successful response, whose body is yet to be read. */
  async send(call: Call): Promise<Response> {
    const body = call.body === undefined ? undefined : encoded(call.body);
    const isRepeatable = call.isRepeatable === true || IDEMPOTENT.has(call.method);
    let renewals = 0;
    for (let attempt = 0; ; attempt++) {
      const token = call.isAnonymous ? undefined : call.token ?? (await this.credentials.token());
      let pause: number | undefined;
      try {
        const response = await this.fetched(call, body, token);
        if (response.ok) return response;
        const problem = await problemOfResponse(response);
        if (renewals < RENEWALS && (await this.isRenewed(call, problem, token))) {
          renewals++;
          attempt--;
          continue;
        }
        pause = pauseAfterProblem(this.retries, problem, attempt, isRepeatable);
        if (pause === undefined) throw problem;
      } catch (error) {
        if (!isNetworkFailure(error) || call.signal?.aborted) throw error;
        pause = pauseAfterFailure(this.retries, attempt, isRepeatable);
        if (pause === undefined) {
          throw new ConnectionFailedError(`${this.base} did not answer: ${String(error)}`, {
            cause: error,
          });
        }
      }
      await new Promise((resolve) => setTimeout(resolve, (pause as number) * 1000));
    }
  }

  /** Send once; the time limit is that of the answer's beginning. */
  private async fetched(
    call: Call,
    body: string | undefined,
    token: string | undefined,
  ): Promise<Response> {
    const controller = new AbortController();
    const abort = (): void => controller.abort(call.signal?.reason);
    if (call.signal?.aborted) abort();
    call.signal?.addEventListener("abort", abort, { once: true });
    const timer = setTimeout(
      () => controller.abort(new TimeoutError()),
      call.timeoutMs ?? this.timeoutMs,
    );
    const headers: Record<string, string> = { Accept: "application/json" };
    for (const [name, value] of Object.entries(call.headers ?? {})) {
      if (value !== undefined) headers[name] = value;
    }
    if (token !== undefined) headers["Authorization"] = `Bearer ${token}`;
    if (body !== undefined) headers["Content-Type"] = "application/json";
    try {
      return await this.fetcher(this.base + call.path + query(call.params), {
        method: call.method,
        headers,
        body: call.content ?? body ?? null,
        // A token must not be sent to wherever a redirect leads.
        redirect: "manual",
        signal: controller.signal,
      });
    } finally {
      clearTimeout(timer);
    }
  }

  private async isRenewed(
    call: Call,
    problem: ProblemError,
    token: string | undefined,
  ): Promise<boolean> {
    const isSuperseded = problem.code === "token_superseded";
    const isRenewable = isSuperseded || problem.code === "token_expired";
    if (call.token !== undefined || call.isAnonymous || !isRenewable) return false;
    const refresh = (refreshToken: string) =>
      // Of two refreshes with one token within ten seconds both get the same answer.
      this.call<TokenPair>({
        method: "POST",
        path: "/v1/auth/refresh",
        body: { refresh_token: refreshToken },
        isRepeatable: true,
        isAnonymous: true,
      });
    return this.credentials.renew(token, refresh, isSuperseded);
  }
}

class TimeoutError extends Error {
  constructor() {
    super("no answer in time");
    this.name = "TimeoutError";
  }
}

/** True for what fetch throws where there is no answer. */
function isNetworkFailure(error: unknown): boolean {
  return error instanceof TypeError || error instanceof TimeoutError;
}

function query(params: Call["params"]): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(params ?? {})) {
    if (value !== undefined) given.set(name, String(value));
  }
  const text = given.toString();
  return text === "" ? "" : `?${text}`;
}
