/** Listings, read page by page as they are iterated over. */
import type { Transport } from "./transport.js";
/** Return all results of a listing. */
export declare function listed<T>(transport: Transport, path: string, params?: Record<string, string | boolean | undefined>): AsyncGenerator<T>;
