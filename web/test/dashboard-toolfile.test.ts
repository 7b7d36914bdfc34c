import assert from "node:assert/strict";
import test from "node:test";
import { fileName, fromFile, toFile, toParams, toRequest } from "../src/dashboard/toolfile.ts";
import type { Tool } from "../src/dashboard/types.ts";

const tool = (over: Partial<Tool> = {}): Tool => ({
  name: "shop__add", pageName: "add", title: "", description: "Adds.", source: "dynamic", origin: { kind: "code", code: "return args.a;" },
  inputSchema: { type: "object", properties: { a: { type: "number", description: "first" }, b: { type: ["string", "null"], enum: ["x", null] }, c: { type: "array", items: {} } }, required: ["a"] }, ...over,
});

const PARAMS = { a: { type: "number", description: "first" }, b: { type: "string", nullable: true, enum: ["x"], optional: true }, c: { type: "array", items: {}, optional: true } };

test("a file holds what adds the tool again", () => {
  const text = toFile(tool())!;
  assert.deepEqual(JSON.parse(text), { format: "js-bridge-mcp-tool", version: 1, name: "add", description: "Adds.", params: PARAMS, origin: { kind: "code", code: "return args.a;" } });
  assert.deepEqual(toRequest(fromFile(text)), { name: "add", description: "Adds.", params: PARAMS, code: "return args.a;" });
  const byPath = fromFile(toFile(tool({ origin: { kind: "path", path: "app.add" }, inputSchema: { type: "object", properties: {} } }))!);
  assert.deepEqual(toRequest(byPath), { name: "add", description: "Adds.", path: "app.add" });
});

test("a tool of the page itself has none", () => {
  const { origin: _, ...own } = tool({ source: "host" });
  assert.equal(toFile(own), undefined);
});

test("file names are tame", () => {
  assert.equal(fileName(tool()), "add.tool.json");
  assert.equal(fileName(tool({ pageName: "../../etc/pass wd" })), "-etc-pass-wd.tool.json");
  assert.equal(fileName(tool({ pageName: "" })), "tool.tool.json");
  assert.ok(fileName(tool({ pageName: "x".repeat(500) })).length < 80);
});

test("a nested object of which nothing is required says so", () => {
  const params = toParams({ type: "object", properties: { to: { type: "object", properties: { zip: { type: "string" }, in: { type: "object", properties: { x: { type: "string" } }, required: ["x"] } } } }, required: ["to"] });
  assert.deepEqual(params, { to: { type: "object", required: [], properties: { zip: { type: "string" }, in: { type: "object", properties: { x: { type: "string" } }, required: ["x"] } } } });
});

test("a schema that params can't say is given whole", () => {
  for (const schema of [
    { type: "object", properties: { a: { type: "string" } }, additionalProperties: false },
    { type: "object", properties: { a: true } },
    { type: "object", properties: { a: { $ref: "#/$defs/x" } }, $defs: {} },
  ]) assert.equal(toParams(schema), schema);
  for (const schema of [undefined, null, "x", {}, { type: "object" }, { type: "object", properties: {} }]) assert.equal(toParams(schema), undefined);
});

test("a bad file says what is wrong with it", () => {
  const good = { format: "js-bridge-mcp-tool", version: 1, name: "a", description: "", origin: { kind: "path", path: "x" } };
  assert.deepEqual(fromFile("\uFEFF" + JSON.stringify({ ...good, more: 1 })), { name: "a", description: "", origin: { kind: "path", path: "x" } });
  const table: [unknown, RegExp][] = [
    [[], /format/],
    [null, /format/],
    [{ ...good, format: "x" }, /format/],
    [{ ...good, version: 2 }, /version 2.*reads version 1/],
    [{ ...good, version: undefined }, /version none/],
    [{ ...good, version: "1" }, /version "1"/],
    [{ ...good, version: "x".repeat(5000) }, /^.{0,120}$/],
    [{ ...good, version: [[1]] }, /version of another kind/],
    [{ ...good, name: " " }, /name/],
    [{ ...good, description: 5 }, /description/],
    [{ ...good, params: [] }, /params/],
    [{ ...good, origin: undefined }, /origin/],
    [{ ...good, origin: { kind: "code" } }, /origin/],
    [{ ...good, origin: { kind: "url", url: "x" } }, /origin/],
  ];
  for (const [file, message] of table) assert.throws(() => fromFile(JSON.stringify(file)), message, JSON.stringify(file));
  for (const text of ["", "{", "not json"]) assert.throws(() => fromFile(text), /not JSON/);
});
