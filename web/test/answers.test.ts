import assert from "node:assert/strict";
import test, { beforeEach } from "node:test";
import { completions, toContents, toMessages, toPrompt } from "../src/answers.ts";
import { freshPage } from "./page.ts";

const LIMIT = 1_000;
const never = new AbortController().signal;
const plain = async (value: Promise<unknown>) => JSON.parse(JSON.stringify(await value));
const text = (text: string) => ({ type: "text", text });
const user = (content: object) => ({ role: "user", content });
const bytes = new Uint8Array([1, 2, 3]);
const asked = { inputRequests: { a: { method: "roots/list", params: {} } }, requestState: "s" };
const revoked = () => {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
};
const cyclic: any = { n: 1n };
cyclic.self = cyclic;

beforeEach(() => freshPage());

for (const [name, value, want] of [
  ["a text", "hi", [user(text("hi"))]],
  ["an empty text", "", [user(text(""))]],
  ["an item", { type: "image", data: "AA==", mimeType: "image/png" }, [user({ type: "image", data: "AA==", mimeType: "image/png" })]],
  ["no message", [], []],
  ["a mixture", ["a", { role: "assistant", content: "b" }, { role: "user", content: text("c") }, text("d"), { content: "e" }],
    [user(text("a")), { role: "assistant", content: text("b") }, user(text("c")), user(text("d")), user(text("e"))]],
  ["an image", new Blob([bytes], { type: "image/png" }), [user({ type: "image", data: "AQID", mimeType: "image/png" })]],
  ["a Blob of text", [{ role: "assistant", content: new Blob(["x"], { type: "text/markdown" }) }], [{ role: "assistant", content: text("x") }]],
] as [string, unknown, object[]][]) {
  test(`prompt: ${name}`, async () => {
    assert.deepEqual(await plain(toPrompt(value, LIMIT)), { messages: want });
    const whole = { messages: Array.isArray(value) ? value : [value], description: "D", _meta: { a: 1 } };
    assert.deepEqual(await plain(toPrompt(whole, LIMIT)), { messages: want, description: "D", _meta: { a: 1 } });
  });
}

test("prompt: other binary becomes an embedded resource", async () => {
  const { messages } = await plain(toPrompt(bytes, LIMIT));
  assert.equal(messages[0].content.resource.blob, "AQID");
  assert.match(messages[0].content.resource.uri, /^page:\/\/blob\/\d+$/);
});

for (const [name, value, message] of [
  ["nothing", undefined, /returned nothing/],
  ["a number", 5, /not a text or an MCP content item.*: 5$/],
  ["null", null, /: null$/],
  ["an object", { a: 1 }, /: {"a":1}$/],
  ["a bad role", [{ role: "system", content: "x" }], /role must be user or assistant, not "system"/],
  ["a list as content", [{ role: "user", content: [text("x")] }], /not a text or an MCP content item/],
  ["a revoked proxy", revoked(), /./],
  ["binary over the limit", new Uint8Array(LIMIT + 1), /1001 bytes, the limit is 1000/],
  ["a getter that throws", { get messages() { throw Error("mine"); } }, /mine/],
] as [string, unknown, RegExp][]) {
  test(`prompt refused: ${name}`, () => assert.rejects(toPrompt(value, LIMIT), message));
}

test("questions to the client go as they are", async () => {
  assert.deepEqual(await plain(toPrompt(asked, LIMIT)), asked);
  assert.deepEqual(await plain(toContents(asked, LIMIT)), asked);
});

test("messages for a model may have lists of items", async () => {
  assert.deepEqual(await plain(toMessages([{ role: "user", content: ["a", text("b")] }], LIMIT, true)), [{ role: "user", content: [text("a"), text("b")] }]);
});

for (const [name, value, want, declared] of [
  ["a text", "hi", { mimeType: "text/plain", text: "hi" }],
  ["a text with a type", "# hi", { mimeType: "text/markdown", text: "# hi" }, "text/markdown"],
  ["JSON", { a: [1, null] }, { mimeType: "application/json", text: '{"a":[1,null]}' }],
  ["null", null, { mimeType: "application/json", text: "null" }],
  ["zero", 0, { mimeType: "application/json", text: "0" }],
  ["what JSON can't hold", cyclic, { mimeType: "x/y", text: '{"n":"1","self":"[circular: $]"}' }, "x/y"],
  ["a Blob of text", new Blob(["a"], { type: "text/css;charset=utf-8" }), { mimeType: "text/css", text: "a" }, "text/plain"],
  ["a Blob declared as text", new Blob(["a"]), { mimeType: "text/plain", text: "a" }, "text/plain"],
  ["a Blob", new Blob([bytes]), { mimeType: "application/octet-stream", blob: "AQID" }],
  ["a Blob with a type", new Blob([bytes], { type: "image/gif" }), { mimeType: "image/gif", blob: "AQID" }],
  ["a buffer", bytes.buffer, { mimeType: "application/octet-stream", blob: "AQID" }],
  ["a typed array", bytes, { mimeType: "font/woff", blob: "AQID" }, "font/woff"],
  ["part of a buffer", bytes.subarray(1), { mimeType: "text/plain", blob: "AgM=" }, "text/plain"],
  ["an object with contents of another kind", { contents: "x" }, { mimeType: "application/json", text: '{"contents":"x"}' }],
] as [string, unknown, object, string?][]) {
  test(`resource: ${name}`, async () => assert.deepEqual(await plain(toContents(value, LIMIT, declared)), { contents: [want] }));
}

for (const [asked, given] of [[undefined, "image/png"], ["image/jpeg", "image/jpeg"], ["image/odd", "image/png"]]) {
  test(`resource: a canvas declared as ${asked}`, async () => {
    const canvas = { [Symbol.toStringTag]: "HTMLCanvasElement", toDataURL: (type?: string) => `data:${type == "image/jpeg" ? type : "image/png"};base64,iVBO` };
    assert.deepEqual(await plain(toContents(canvas, LIMIT, asked)), { contents: [{ mimeType: given, blob: "iVBO" }] });
  });
}

test("resource: MCP's contents are completed and checked", async () => {
  const value = { contents: [{ text: "a" }, { uri: "b", mimeType: "x/y", text: "" }, { blob: "AA==" }, { blob: bytes, _meta: { m: 1 } }], _meta: { a: 1 } };
  assert.deepEqual(await plain(toContents(value, LIMIT, "text/x")), {
    contents: [{ mimeType: "text/x", text: "a" }, { uri: "b", mimeType: "x/y", text: "" }, { mimeType: "text/x", blob: "AA==" }, { mimeType: "text/x", blob: "AQID", _meta: { m: 1 } }],
    _meta: { a: 1 },
  });
  for (const bad of [null, {}, { text: 5 }, "x"]) await assert.rejects(toContents({ contents: [bad] }, LIMIT), /text or a blob/);
});

test("resource: nothing is an error that says so", () => assert.rejects(toContents(undefined, LIMIT), /returned nothing: it must return text/));

test("completions: a list is filtered by prefix, case ignored; a function gets what is known", async () => {
  const got: unknown[] = [];
  const complete = (completer: unknown, value = "", given = {}) => plain(completions(completer, value, given, never));
  assert.deepEqual(await complete(["Berlin", "bern", "Bonn"], "BER"), { values: ["Berlin", "bern"] });
  assert.deepEqual(await complete(undefined, "x"), { values: [] });
  assert.deepEqual(await complete((...args: unknown[]) => (got.push(...args), ["a", 1]), "v", { country: "de" }), { values: ["a", "1"] });
  assert.deepEqual(got, ["v", { arguments: { country: "de" }, signal: never }]);
  assert.deepEqual(await complete(async () => undefined), { values: [] });
  assert.deepEqual(await complete(() => ({ values: ["a"], total: 7, hasMore: true })), { values: ["a"], total: 7, hasMore: true });
  const many = Array.from({ length: 101 }, (_, i) => `v${i}`);
  for (const completer of [many, () => many, () => ({ values: many })]) {
    const { values, ...more } = await complete(completer);
    assert.deepEqual([values.length, more], [100, { total: 101, hasMore: true }]);
  }
  assert.deepEqual((await complete(() => ({ values: many, total: 500 }))).total, 500);
  for (const bad of ["text", 5, { values: "x" }]) await assert.rejects(complete(() => bad), /must give an array of texts or {values}/);
  await assert.rejects(complete(() => { throw Error("mine"); }), /mine/);
});
