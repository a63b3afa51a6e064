/**
 * JSON that holds what it was made from, or an error.
 *
 * JSON.stringify and JSON.parse alone change values without an error.
 */
import { UnreadableAnswerError } from "./errors.js";
/** A value that cannot be sent; nothing was. */
export class ValueError extends TypeError {
    constructor() {
        super(...arguments);
        this.name = "ValueError";
    }
}
/** The values of $1, $2 and so on of a statement; `statement` is its number in a batch. */
export class Parameters {
    constructor(values, statement) {
        this.values = values;
        this.statement = statement;
        if (values !== undefined && !Array.isArray(values)) {
            throw new ValueError("params is an array of values, one for each of $1, $2 and so on.");
        }
    }
}
// As deep as the platform takes it; also what ends a value that contains itself.
const MAX_DEPTH = 254;
/** Return a body as JSON. Throws ValueError for what neither JSON nor PostgreSQL has. */
export function encoded(body) {
    return json(body, "The body", 0);
}
function json(value, place, depth) {
    if (value instanceof Parameters)
        return parameters(value);
    if (Array.isArray(value))
        return array(value, place, depth, json);
    switch (typeof value) {
        case "string":
            return text(value, place);
        case "number":
            return number(value, place);
        case "boolean":
            return String(value);
        case "bigint":
            return integer(value, place);
        case "object":
            if (value === null)
                return "null";
            if (kindOf(value) === "Date")
                return text(moment(value, place), place);
            if (isPlain(value))
                return object(value, place, depth);
    }
    throw new ValueError(`${place}: ${named(value)} cannot be sent.`);
}
function parameters({ values = [], statement }) {
    const before = statement === undefined ? "Parameter" : `Statement ${statement}, parameter`;
    // Not by map, which skips holes.
    const written = Array.from(values, (value, index) => {
        const place = `${before} $${index + 1}`;
        // PostgreSQL reads the text of a number as well, and of one that JSON parsers would round.
        return typeof value === "bigint" ? `"${value}"` : element(value, place, 0);
    });
    return `[${written.join(",")}]`;
}
/** A parameter, or an element of one that is an array: of bytea[], for example. */
function element(value, place, depth) {
    if (Array.isArray(value))
        return array(value, place, depth, element);
    const bytes = bytesOf(value);
    // As PostgreSQL reads bytea.
    return bytes === undefined ? json(value, place, depth) : `"\\\\x${hexadecimal(bytes)}"`;
}
function array(values, place, depth, each) {
    const deeper = descended(place, depth);
    return `[${Array.from(values, (value, index) => each(value, `${place}[${index}]`, deeper)).join(",")}]`;
}
/** Members that are undefined are left out, as by JSON.stringify: they read as undefined again. */
function object(value, place, depth) {
    const deeper = descended(place, depth);
    const members = Object.entries(value)
        .filter(([, each]) => each !== undefined)
        .map(([key, each]) => {
        const at = `${place}.${key}`;
        return `${text(key, at)}:${json(each, at, deeper)}`;
    });
    return `{${members.join(",")}}`;
}
function descended(place, depth) {
    if (depth < MAX_DEPTH)
        return depth + 1;
    throw new ValueError(`${place.slice(0, 60)}…: JSON this deep must be sent as a string.`);
}
function text(value, place) {
    checkText(value, place);
    return JSON.stringify(value);
}
/** Throws ValueError for what UTF-8 does not have: it would be sent as other characters. */
export function checkText(value, place) {
    if (/\p{Surrogate}/u.test(value)) {
        throw new ValueError(`${place}: half of a surrogate pair cannot be sent.`);
    }
}
function number(value, place) {
    if (!Number.isFinite(value)) {
        throw new ValueError(`${place}: ${value} is no JSON: send it as a string.`);
    }
    if (Object.is(value, -0))
        return "-0.0";
    const isLong = Number.isInteger(value) && !Number.isSafeInteger(value);
    // JavaScript writes 2 ** 60 with digits that are not its own.
    return isLong && Math.abs(value) < 2 ** 63 ? String(BigInt(value)) : String(value);
}
function integer(value, place) {
    if (BigInt.asIntN(64, value) === value)
        return String(value);
    throw new ValueError(`${place}: a bigint beyond 64 bits must be sent as a string here.`);
}
function moment(value, place) {
    const year = value.getUTCFullYear();
    if (Number.isNaN(year))
        throw new ValueError(`${place}: an invalid Date cannot be sent.`);
    if (year < 1 || year > 9999) {
        throw new ValueError(`${place}: a Date outside of the years 1 to 9999 must be sent as a string.`);
    }
    return value.toISOString();
}
function bytesOf(value) {
    if (ArrayBuffer.isView(value)) {
        return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
    }
    return ["ArrayBuffer", "SharedArrayBuffer"].includes(kindOf(value))
        ? new Uint8Array(value)
        : undefined;
}
function hexadecimal(bytes) {
    return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
/** The kind of a built-in object, also of one from another window or context. */
function kindOf(value) {
    return Object.prototype.toString.call(value).slice(8, -1);
}
/** True for `{…}`: what an instance of a class means is in its class, not in its members. */
function isPlain(value) {
    const parent = Object.getPrototypeOf(value);
    const isBare = parent === null || Object.getPrototypeOf(parent) === null;
    return isBare && Object.getOwnPropertySymbols(value).length === 0;
}
function named(value) {
    if (value === undefined)
        return "undefined";
    if (typeof value !== "object" || value === null)
        return `a ${typeof value}`;
    const name = value.constructor?.name;
    if (name === "Object")
        return "an object with symbols as keys";
    return `an object of the class ${typeof name === "string" && name !== "" ? name : kindOf(value)}`;
}
// A number without these has at most 15 digits and a small exponent: JavaScript's hold it.
const DOUBTFUL = /[\d.]{16}|[eE][+-]?\d{3}/;
/** Return what an answer's JSON holds; a number that JavaScript's cannot hold is kept as its text. */
export function decoded(source) {
    return DOUBTFUL.test(source) ? exact(source, false) : JSON.parse(source);
}
/** Return the value of a column of json, or of an array of it. Throws UnreadableAnswerError. */
export function decodedJson(value) {
    if (Array.isArray(value))
        return value.map(decodedJson);
    return typeof value === "string" ? exact(value, true) : value;
}
function exact(source, isJsonColumn) {
    const mark = /["{}]|-?\d[\d.eE+-]*/g;
    const keys = [];
    const kept = [];
    let from = 0;
    for (let found = mark.exec(source); found !== null; found = mark.exec(source)) {
        const [token] = found;
        if (token === "{")
            keys.push(new Set());
        else if (token === "}")
            keys.pop();
        else if (token === '"') {
            mark.lastIndex = endOfString(source, mark.lastIndex);
            const key = source.slice(found.index, mark.lastIndex);
            if (isJsonColumn && isKey(source, mark.lastIndex))
                addKey(keys[keys.length - 1], key);
        }
        else if (!isExact(token)) {
            kept.push(source.slice(from, found.index), `"${token}"`);
            from = mark.lastIndex;
        }
    }
    return JSON.parse(kept.join("") + source.slice(from));
}
/** Not by a pattern for the whole of it, which has no room for a string of megabytes. */
function endOfString(source, from) {
    for (let at = source.indexOf('"', from); at >= 0; at = source.indexOf('"', at + 1)) {
        let backslashes = 0;
        while (source[at - 1 - backslashes] === "\\")
            backslashes++;
        if (backslashes % 2 === 0)
            return at + 1;
    }
    return source.length;
}
function isKey(source, at) {
    const colon = /\s*:/y;
    colon.lastIndex = at;
    return colon.test(source);
}
function addKey(keys, written) {
    const key = JSON.parse(written);
    if (keys?.has(key)) {
        throw new UnreadableAnswerError(`The answer has an object with two members ${JSON.stringify(key)}, of which JavaScript ` +
            'would keep one. Do not repeat the request. Without json: "parsed" json is text.');
    }
    keys?.add(key);
}
function isExact(token) {
    const held = String(Number(token));
    return held === token || normal(held) === normal(token);
}
/** Return a number's digits without zeros around them, and the power of ten of the last one. */
function normal(literal) {
    const [, whole = "", fraction = "", power = "0"] = /^-?(\d+)\.?(\d*)(?:[eE]([+-]?\d+))?$/.exec(literal) ?? [];
    const digits = (whole + fraction).replace(/^0+/, "");
    const short = digits.replace(/0+$/, "");
    const last = BigInt(power) - BigInt(fraction.length) + BigInt(digits.length - short.length);
    return short === "" ? whole && "0" : `${short}e${last}`;
}
