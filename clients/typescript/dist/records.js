/** NDJSON: records out of a body that comes in pieces, in memory of one line. */
import { StreamCutError, UnexpectedAnswerError } from "./errors.js";
import { decoded } from "./json.js";
/** Return the records of a body; leaving the loop early cancels it. */
export async function* records(body) {
    const decoder = new TextDecoder();
    let rest = "";
    for await (const piece of pieces(body)) {
        // Lines end with LF only: JSON may hold U+2028 and others.
        const lines = (rest + decoder.decode(piece, { stream: true })).split("\n");
        rest = lines.pop();
        for (const line of lines) {
            if (line !== "")
                yield parsed(line);
        }
    }
}
function parsed(line) {
    try {
        return decoded(line);
    }
    catch (error) {
        if (!(error instanceof SyntaxError))
            throw error;
        throw new UnexpectedAnswerError("A record of the stream is no JSON.", { cause: error });
    }
}
/** Return the pieces of a body; leaving the loop early cancels it. */
export async function* pieces(body) {
    const reader = body.getReader();
    let isDone = false;
    try {
        for (;;) {
            const read = await reader.read().catch((error) => {
                isDone = true;
                throw new StreamCutError(`The stream was cut: ${String(error)}`, { cause: error });
            });
            if (read.done) {
                isDone = true;
                return;
            }
            yield read.value;
        }
    }
    finally {
        if (!isDone)
            await reader.cancel();
    }
}
