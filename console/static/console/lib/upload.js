// @ts-check
/** A request whose body may be large: it tells how much of it was sent, which fetch does not. */

/**
 * Do what fetch does.
 * @param {string} path
 * @param {{method: string, headers: Record<string, string>, body: Blob, signal?: AbortSignal}} request
 * @param {(sent: number) => void} progressed of bytes
 * @returns {Promise<Response>}
 * @throws {TypeError} where no answer came, also after the signal
 */
export function upload(path, { method, headers, body, signal }, progressed) {
  return new Promise((done, failed) => {
    const request = new XMLHttpRequest();
    const fail = () => failed(new TypeError("No answer came."));
    request.open(method, path);
    request.responseType = "blob";
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", ({ loaded }) => progressed(loaded));
    request.addEventListener("load", () => done(new Response(request.response, { status: request.status, headers: headersOf(request) })));
    request.addEventListener("error", fail);
    request.addEventListener("abort", fail);
    if (signal?.aborted) return fail();
    signal?.addEventListener("abort", () => request.abort());
    request.send(body);
  });
}

/** @param {XMLHttpRequest} request */
function headersOf(request) {
  const lines = request.getAllResponseHeaders().trim().split("\r\n").filter(Boolean);
  return new Headers(lines.map((line) => /** @type {[string, string]} */ (line.split(/: (.*)/s, 2))));
}
