/** What the client throws: `ZonalError` and its kinds. */
/** Base of all errors of this package. */
export class ZonalError extends Error {
    constructor(message, options) {
        super(message);
        this.name = new.target.name;
        if (options !== undefined && "cause" in options) {
            this.cause = options.cause;
        }
    }
}
/** The platform did not answer; whether the request had an effect is unknown. */
export class ConnectionFailedError extends ZonalError {
}
/** A stream ended without its end; rows are missing. */
export class StreamCutError extends ZonalError {
}
/** A successful answer that is not what the API answers: is the URL the platform's? */
export class UnexpectedAnswerError extends ZonalError {
}
/**
 * A successful answer that JavaScript's values cannot hold: do not repeat the request.
 *
 * It was carried out, except that of a stream's statement this is unknown.
 */
export class UnreadableAnswerError extends ZonalError {
}
/** The organization requires a second factor: set one up in the console. */
export class EnrolmentRequiredError extends ZonalError {
}
/** The sign-in needs a second factor; `methods` names those that the user has. */
export class SecondFactorRequiredError extends ZonalError {
    constructor(methods) {
        super(`A second factor is required (${methods.join(", ")}): pass secondFactor.`);
        this.methods = methods;
    }
}
/** A refusal of the platform's, as its problem document describes it. */
export class ProblemError extends ZonalError {
    constructor(status, body, retryAfterS) {
        super(text(status, body));
        this.status = status;
        this.body = body;
        this.retryAfterS = retryAfterS;
        this.code = body.code ?? `http_${status}`;
        this.title = body.title ?? "";
        this.detail = body.detail ?? "";
        this.requestId = body.request_id ?? "";
    }
    /** The wrong fields of a request. */
    get errors() {
        return this.body.errors ?? [];
    }
    /** True if the same request may succeed later and had no effect so far. */
    get isRetryable() {
        return this.body.retryable === true || this.status === 429;
    }
}
/** PostgreSQL refused a statement; line and column are those of the text that was sent. */
export class SqlError extends ProblemError {
    get sqlstate() {
        return String(this.body["sqlstate"] ?? "");
    }
    get line() {
        return this.body["line"];
    }
    get column() {
        return this.body["column"];
    }
    get hint() {
        return String(this.body["hint"] ?? "");
    }
}
/** 401: sign in again. */
export class AuthenticationError extends ProblemError {
}
/** 403. */
export class PermissionDeniedError extends ProblemError {
}
/** 404 and 410. */
export class NotFoundError extends ProblemError {
}
/** 409. */
export class ConflictError extends ProblemError {
}
/** 429; `retryAfterS` says when to come back. */
export class RateLimitError extends ProblemError {
}
/** 5xx. */
export class ServerError extends ProblemError {
}
const BY_STATUS = {
    401: AuthenticationError,
    403: PermissionDeniedError,
    404: NotFoundError,
    409: ConflictError,
    410: NotFoundError,
    429: RateLimitError,
};
/** Return the error of a problem document. */
export function problemOf(status, body, retryAfterS) {
    if (body.code === "sql_error")
        return new SqlError(status, body, retryAfterS);
    const kind = BY_STATUS[status] ?? (status >= 500 ? ServerError : ProblemError);
    return new kind(status, body, retryAfterS);
}
/** Return the error of a response that is no success. */
export async function problemOfResponse(response) {
    let body;
    try {
        body = JSON.parse(await response.text());
    }
    catch (error) {
        if (!(error instanceof SyntaxError))
            throw error;
    }
    const isDocument = typeof body === "object" && body !== null && !Array.isArray(body);
    const wait = response.headers.get("Retry-After") ?? "";
    return problemOf(
    // A redirect that a browser does not let through has no status.
    response.status || 302, isDocument ? body : { title: response.statusText }, /^\d+$/.test(wait) ? Number(wait) : undefined);
}
function text(status, body) {
    const wrong = (body.errors ?? []).map((each) => `${each.field}: ${each.message}`).join("; ");
    const said = [body.title, body.detail, wrong].filter(Boolean).join(" ");
    const named = `${status} ${body.code ?? `http_${status}`}`;
    const traced = body.request_id ? ` (request ${body.request_id})` : "";
    return said ? `${named}: ${said}${traced}` : `${named}${traced}`;
}
