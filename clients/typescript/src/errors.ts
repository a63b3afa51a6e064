/** What the client throws: `ZonalError` and its kinds. */

/** A problem document (RFC 9457) of the platform. */
export interface Problem {
  type?: string;
  title?: string;
  status?: number;
  /** Stable; docs/errors.md lists them. */
  code?: string;
  detail?: string;
  request_id?: string;
  errors?: { field: string; code: string; message: string }[];
  retryable?: boolean;
  [member: string]: unknown;
}

/** Base of all errors of this package. */
export class ZonalError extends Error {
  constructor(message: string, options?: { cause?: unknown }) {
    super(message);
    this.name = new.target.name;
    if (options !== undefined && "cause" in options) {
      (this as { cause?: unknown }).cause = options.cause;
    }
  }
}

/** The platform did not answer; whether the request had an effect is unknown. */
export class ConnectionFailedError extends ZonalError {}

/** A stream ended without its end; rows are missing. */
export class StreamCutError extends ZonalError {}

/** A successful answer that is not what the API answers: is the URL the platform's? */
export class UnexpectedAnswerError extends ZonalError {}

/**
 * A successful answer that JavaScript's values cannot hold: do not repeat the request.
 *
 * It was carried out, except that of a stream's statement this is unknown.
 */
export class UnreadableAnswerError extends ZonalError {}

/** The organization requires a second factor: set one up in the console. */
export class EnrolmentRequiredError extends ZonalError {}

/** The sign-in needs a second factor; `methods` names those that the user has. */
export class SecondFactorRequiredError extends ZonalError {
  constructor(readonly methods: string[]) {
    super(`A second factor is required (${methods.join(", ")}): pass secondFactor.`);
  }
}

/** A refusal of the platform's, as its problem document describes it. */
export class ProblemError extends ZonalError {
  /** Stable; `http_502` and the like if something in front of the platform answered. */
  readonly code: string;
  readonly title: string;
  readonly detail: string;
  readonly requestId: string;

  constructor(
    readonly status: number,
    readonly body: Problem,
    readonly retryAfterS?: number,
  ) {
    super(text(status, body));
    this.code = body.code ?? `http_${status}`;
    this.title = body.title ?? "";
    this.detail = body.detail ?? "";
    this.requestId = body.request_id ?? "";
  }

  /** The wrong fields of a request. */
  get errors(): { field: string; code: string; message: string }[] {
    return this.body.errors ?? [];
  }

  /** True if the same request may succeed later and had no effect so far. */
  get isRetryable(): boolean {
    return this.body.retryable === true || this.status === 429;
  }
}

/** PostgreSQL refused a statement; line and column are those of the text that was sent. */
export class SqlError extends ProblemError {
  get sqlstate(): string {
    return String(this.body["sqlstate"] ?? "");
  }

  get line(): number | undefined {
    return this.body["line"] as number | undefined;
  }

  get column(): number | undefined {
    return this.body["column"] as number | undefined;
  }

  get hint(): string {
    return String(this.body["hint"] ?? "");
  }
}

/** 401: sign in again. */
export class AuthenticationError extends ProblemError {}
/** 403. */
export class PermissionDeniedError extends ProblemError {}
/** 404 and 410. */
export class NotFoundError extends ProblemError {}
/** 409. */
export class ConflictError extends ProblemError {}
/** 429; `retryAfterS` says when to come back. */
export class RateLimitError extends ProblemError {}
/** 5xx. */
export class ServerError extends ProblemError {}

const BY_STATUS: Record<number, typeof ProblemError> = {
  401: AuthenticationError,
  403: PermissionDeniedError,
  404: NotFoundError,
  409: ConflictError,
  410: NotFoundError,
  429: RateLimitError,
};

/** Return the error of a problem document. */
export function problemOf(status: number, body: Problem, retryAfterS?: number): ProblemError {
  if (body.code === "sql_error") return new SqlError(status, body, retryAfterS);
  const kind = BY_STATUS[status] ?? (status >= 500 ? ServerError : ProblemError);
  return new kind(status, body, retryAfterS);
}

/** Return the error of a response that is no success. */
export async function problemOfResponse(response: Response): Promise<ProblemError> {
  let body: unknown;
  try {
    body = JSON.parse(await response.text());
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  const isDocument = typeof body === "object" && body !== null && !Array.isArray(body);
  const wait = response.headers.get("Retry-After") ?? "";
  return problemOf(
    // A redirect that a browser does not let through has no status.
    response.status || 302,
    isDocument ? (body as Problem) : { title: response.statusText },
    /^\d+$/.test(wait) ? Number(wait) : undefined,
  );
}

function text(status: number, body: Problem): string {
  const wrong = (body.errors ?? []).map((each) => `${each.field}: ${each.message}`).join("; ");
  const said = [body.title, body.detail, wrong].filter(Boolean).join(" ");
  const named = `${status} ${body.code ?? `http_${status}`}`;
  const traced = body.request_id ? ` (request ${body.request_id})` : "";
  return said ? `${named}: ${said}${traced}` : `${named}${traced}`;
}
