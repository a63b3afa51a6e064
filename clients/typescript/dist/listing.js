/** Listings, read page by page as they are iterated over. */
/** Return all results of a listing. */
export async function* listed(transport, path, params = {}) {
    let query = params;
    while (query !== undefined) {
        const page = await transport.call({ method: "GET", path, params: query });
        for (const result of page.results)
            yield result;
        // Only the query of the URL is used: a token must not be sent to whatever host it names.
        query = page.next
            ? Object.fromEntries(new URLSearchParams(page.next.split("?")[1] ?? ""))
            : undefined;
    }
}
