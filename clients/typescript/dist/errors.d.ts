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
    errors?: {
        field: string;
        code: string;
        message: string;
    }[];
    retryable?: boolean;
    [member: string]: unknown;
}
/** Base of all errors of this package. */
export declare class ZonalError extends Error {
    constructor(message: string, options?: {
        cause?: unknown;
    });
}
/** The platform did not answer; whether the request had an effect is unknown. */
export declare class ConnectionFailedError extends ZonalError {
}
/** A stream ended without its end; rows are missing. */
export declare class StreamCutError extends ZonalError {
}
/** A successful answer that is not what the API answers: is the URL the platform's? */
export declare class UnexpectedAnswerError extends ZonalError {
}
/**
 * A successful answer that JavaScript's values cannot hold: do not repeat the request.
 *
 * It was carried out, except that of a stream's statement this is unknown.
 */
export declare class UnreadableAnswerError extends ZonalError {
}
/** The organization requires a second factor: set one up in the console. */
export declare class EnrolmentRequiredError extends ZonalError {
}
/** The sign-in needs a second factor; `methods` names those that the user has. */
export declare class SecondFactorRequiredError extends ZonalError {
    readonly methods: string[];
    constructor(methods: string[]);
}
/** A refusal of the platform's, as its problem document describes it. */
export declare class ProblemError extends ZonalError {
    readonly status: number;
    readonly body: Problem;
    readonly retryAfterS?: number | undefined;
    /** Stable; `http_502` and the like if something in front of the platform answered. */
    readonly code: string;
    readonly title: string;
    readonly detail: string;
    readonly requestId: string;
    constructor(status: number, body: Problem, retryAfterS?: number | undefined);
    /** The wrong fields of a request. */
    get errors(): {
        field: string;
        code: string;
        message: string;
    }[];
    /** True if the same request may succeed later and had no effect so far. */
    get isRetryable(): boolean;
}
/** PostgreSQL refused a statement; line and column are those of the text that was sent. */
export declare class SqlError extends ProblemError {
    get sqlstate(): string;
    get line(): number | undefined;
    get column(): number | undefined;
    get hint(): string;
}
/** 401: sign in again. */
export declare class AuthenticationError extends ProblemError {
}
/** 403. */
export declare class PermissionDeniedError extends ProblemError {
}
/** 404 and 410. */
export declare class NotFoundError extends ProblemError {
}
/** 409. */
export declare class ConflictError extends ProblemError {
}
/** 429; `retryAfterS` says when to come back. */
export declare class RateLimitError extends ProblemError {
}
/** 5xx. */
export declare class ServerError extends ProblemError {
}
/** Return the error of a problem document. */
export declare function problemOf(status: number, body: Problem, retryAfterS?: number): ProblemError;
/** Return the error of a response that is no success. */
export declare function problemOfResponse(response: Response): Promise<ProblemError>;
