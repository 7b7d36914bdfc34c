import assert from "node:assert/strict";
import test from "node:test";
import { toResult as convert } from "../src/convert.ts";
import { toContent } from "../src/media.ts";
import { freshPage } from "./page.ts";

const PNG = "\x89PNG\r\n\x1a\n";
const PNG_URL = "data:image/png;base64," + btoa(PNG);
const bytes = (text: string) => Uint8Array.from(text, (c) => c.charCodeAt(0));
/** Binary as it is sent; its number is left out. */
const binary = (text: string, mimeType?: string) => ({ content: [{ type: "resource", resource: { uri: "page://blob/", ...(mimeType && { mimeType }), blob: btoa(text) } }] });
const toResult = (value: unknown, limit?: number) => convert(value, async () => ({ toContent }) as any, limit);
/** As the server will read it. */
const wire = async (value: unknown) => JSON.parse(JSON.stringify({ result: await toResult(value) })).result;
const tagged = (tag: string, fields: object = {}) => Object.assign(Object.create({ [Symbol.toStringTag]: tag }), fields);

class Point {
  x = 1;
  get y() {
    return 2;
  }
}
const circular: any = { a: { b: {} } };
circular.a.b.top = circular;
const twice = { n: 1 };
const hostile = { good: 1, get bad() { throw Error("no"); }, nested: { toJSON() { throw Error("never"); } } };
const revoked = Proxy.revocable({}, {});
revoked.revoke();
const foreign: any = new Proxy({}, { get: (_, key) => { if (key == "window") return foreign; throw new DOMException("cross-origin"); } });
const error = Object.assign(new TypeError("bad", { cause: new Error("worse") }), { code: 7 });
const node = { nodeType: 1, nodeName: "BUTTON", outerHTML: `<button id="save" class="big">${"x".repeat(500)}</button>` };

const rows: [string, unknown, unknown][] = [
  ["string", "text", "text"],
  ["empty string", "", ""],
  ["undefined", undefined, undefined],
  ["null", null, null],
  ["zero", 0, 0],
  ["false", false, false],
  ["array", [1, "a", null], [1, "a", null]],
  ["object", { a: { b: [true] } }, { a: { b: [true] } }],
  ["MCP content", { content: [{ type: "text", text: "x" }], isError: true, structuredContent: { a: 1 }, _meta: { b: 2 } }, { content: [{ type: "text", text: "x" }], isError: true, structuredContent: { a: 1 }, _meta: { b: 2 } }],
  ["NaN", NaN, "NaN"],
  ["Infinity inside", { a: -Infinity }, { a: "-Infinity" }],
  ["BigInt", { n: 12345678901234567890n }, { n: "12345678901234567890" }],
  ["symbol", Symbol("s"), "Symbol(s)"],
  ["function", function save() {}, "[function save]"],
  ["Map with text keys", new Map([["a", 1], ["__proto__", 2]]), JSON.parse('{"a":1,"__proto__":2}')],
  ["Map with other keys", new Map<unknown, unknown>([[1, "a"], [{ k: 1 }, "b"]]), [[1, "a"], [{ k: 1 }, "b"]]],
  ["Set", new Set([1, "a"]), [1, "a"]],
  ["empty Set, Map and typed array inside", { s: new Set(), m: new Map(), t: new Uint8Array() }, { s: [], m: {}, t: [] }],
  ["DataView inside", { d: new DataView(new ArrayBuffer(1)) }, { d: "[DataView]" }],
  ["Date", new Date(0), "1970-01-01T00:00:00.000Z"],
  ["invalid Date", new Date(NaN), "Invalid Date"],
  ["Error with cause", error, { name: "TypeError", message: "bad", cause: { name: "Error", message: "worse" }, code: 7 }],
  ["DOMException", new DOMException("no", "AbortError"), { name: "AbortError", message: "no" }],
  ["RegExp", [/a+/g], ["/a+/g"]],
  ["URL", new URL("http://a/b"), "http://a/b"],
  ["URLSearchParams", new URLSearchParams("a=1&b=2"), "[URLSearchParams]"],
  ["Headers", new Headers({ a: "1" }), "[Headers]"],
  ["FormData", new FormData(), "[FormData]"],
  ["Response", new Response("x", { status: 404 }), "[Response]"],
  ["Promise inside", { p: Promise.resolve() }, { p: "[Promise]" }],
  ["WeakMap", new WeakMap(), "[WeakMap]"],
  ["generator", (function* () {})(), "[Generator]"],
  ["Blob inside", [new Blob(["abc"], { type: "text/plain" })], ["[Blob]"]],
  ["typed array inside", { a: new Float32Array([1.5, 2]) }, { a: [1.5, 2] }],
  ["class instance", new Point(), { x: 1 }],
  ["no prototype", Object.assign(Object.create(null), { a: 1 }), { a: 1 }],
  ["toJSON", { toJSON: () => ({ a: new Set([1]) }) }, { a: [1] }],
  ["getter and toJSON that throw", hostile, { good: 1, bad: "[throws: no]", nested: "[throws: never]" }],
  ["cycle", circular, { a: { b: { top: "[circular: $]" } } }],
  ["inner cycle", [circular.a], [{ b: { top: { a: "[circular: $.0]" } } }]],
  ["the same object twice", [twice, twice], [{ n: 1 }, { n: 1 }]],
  ["revoked proxy", revoked.proxy, "[throws: Cannot perform 'get' on a proxy that has been revoked]"],
  ["foreign window", [foreign], ["[Window]"]],
  ["element", node, ("BUTTON: " + node.outerHTML).slice(0, 200)],
  ["document", { nodeType: 9, nodeName: "#document", textContent: null, URL: "http://a/" }, "#document: null"],
  ["sparse array", [1, , 3], [1, null, 3]],
  ["lone surrogate", "\ud800", "\ud800"],
  ["image data URL", PNG_URL, PNG_URL],
  ["svg data URL", "data:image/svg+xml;base64," + btoa("<svg/>"), "data:image/svg+xml;base64," + btoa("<svg/>")],
  ["html data URL", "data:text/html,<p>", "data:text/html,<p>"],
  ["text that begins alike", "data:image/ is a prefix, see", "data:image/ is a prefix, see"],
  ["nested data URL", { image: "data:image/png;base64,AA" }, { image: "data:image/png;base64,AA" }],
  ["Blob with an image", new Blob([bytes(PNG)], { type: "image/png" }), binary(PNG, "image/png")],
  ["Blob without a type", new Blob([bytes(PNG)]), binary(PNG)],
  ["Uint8Array, a view", bytes("--GIF89a").subarray(2), binary("GIF89a")],
  ["ArrayBuffer", bytes("RIFF0000WEBPVP8 ").buffer, binary("RIFF0000WEBPVP8 ")],
  ["DataView", new DataView(bytes("RIFF0000WAVE").buffer), binary("RIFF0000WAVE")],
  ["recorded audio", new Blob([bytes("\x1aE\xdf\xa3")], { type: "audio/webm;codecs=opus" }), binary("\x1aE\xdf\xa3", "audio/webm")],
  ["text Blob", new Blob(["héllo"], { type: "text/plain;charset=utf-8" }), "héllo"],
  ["JSON Blob", new Blob(['{"a":1}'], { type: "application/json" }), '{"a":1}'],
  ["SVG Blob", new Blob(["<svg/>"], { type: "image/svg+xml" }), "<svg/>"],
];

for (const [name, value, want] of rows) {
  test(`result: ${name}`, async () => {
    const got = await wire(value);
    const resource = got?.content?.[0]?.resource;
    if (resource) resource.uri = resource.uri.replace(/\d+$/, "");
    assert.deepEqual(got, want);
  });
}

test("result: other binary is an embedded resource", async () => {
  const uris = new Set<string>();
  for (const [value, mimeType] of [[new Blob([bytes("%PDF-")], { type: "application/pdf" }), "application/pdf"], [new Uint8Array([0xff, 0xfb, 1]), undefined], [new Blob([bytes("OggS")], { type: "video/ogg" }), "video/ogg"]] as const) {
    const { content } = await wire(value);
    uris.add(content[0].resource.uri);
    assert.match(content[0].resource.uri, /^page:\/\/blob\/\d+$/);
    assert.equal(content[0].type, "resource");
    assert.equal(content[0].resource.mimeType, mimeType);
    assert.equal(typeof content[0].resource.blob, "string");
  }
  assert.equal(uris.size, 3, "each has its own address");
});

test("result: every byte of a large array arrives", async () => {
  const all = Uint8Array.from({ length: 100_003 }, (_, i) => i);
  const { content } = await wire(all);
  assert.deepEqual(Buffer.from(content[0].resource.blob, "base64"), Buffer.from(all));
});

test("result: a Blob over the limit is refused unread", async () => {
  const blob = tagged("Blob", { size: 11, type: "", arrayBuffer: () => assert.fail("was read") });
  await assert.rejects(toResult(blob, 10), /Blob of 11 bytes, the limit is 10/);
});

test("result: depth and number of values are bounded, and say so", async () => {
  let deep: any = "end";
  for (let i = 0; i < 100; i++) deep = { deep };
  assert.match(JSON.stringify(await toResult(deep)), /\[too deep\]/);
  const long: any = await toResult([Array(200_000).fill(1), 2]);
  assert.ok(long[0].length <= 100_001);
  assert.equal(long[0].at(-1), "[too many]");
  const sparse: any = await toResult(Array(4_000_000_000));
  assert.ok(sparse.length <= 100_001);
});

test("result: canvases and pictures", async (t) => {
  freshPage();
  const url = PNG_URL;
  const drawn: unknown[][] = [];
  (document as any).createElement = () => ({
    getContext: () => ({ drawImage: (...args: unknown[]) => drawn.push(["draw", ...args]), putImageData: (...args: unknown[]) => drawn.push(["put", ...args]) }),
    toDataURL(this: any) {
      drawn.push([this.width, this.height]);
      return url;
    },
  });
  assert.deepEqual(await wire(tagged("HTMLCanvasElement", { toDataURL: () => url })), url);
  for (const tag of ["OffscreenCanvas", "ImageBitmap", "ImageData"]) {
    const picture = tagged(tag, { width: 3, height: 2 });
    drawn.length = 0;
    assert.deepEqual(await wire(picture), url);
    assert.deepEqual(drawn, [[tag == "ImageData" ? "put" : "draw", picture, 0, 0], [3, 2]]);
  }
  await t.test("a tainted one fails with the browser's words", async () => {
    const tainted = tagged("HTMLCanvasElement", { toDataURL() { throw new DOMException("Tainted canvases may not be exported.", "SecurityError"); } });
    await assert.rejects(toResult(tainted), /Tainted/);
  });
});
