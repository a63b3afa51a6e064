/** Listings, read page by page as they are iterated over. */

import type { Transport } from "./transport.js";

interface Page<T> {
  results: T[];
  next?: string | null;
}

/** Return all results of a listing. */
export async function* listed<T>(
  transport: Transport,
  path: string,
  params: Record<string, string | boolean | undefined> = {},
): AsyncGenerator<T> {
  let query: Record<string, string | boolean | undefined> | undefined = params;
  while (query !== undefined) {
    const page: Page<T> = await transport.call({ method: "GET", path, params: query });
    for (const result of page.results) yield result;
    // Only the query of the URL is used: a token must not be sent to whatever host it names.
    query = page.next
      ? Object.fromEntries(new URLSearchParams(page.next.split("?")[1] ?? ""))
      : undefined;
  }
}
