/** What holds for every `.tool.json` file and every tool, whoever wrote it. */

import assert from "node:assert/strict";
import test from "node:test";
import fc from "fast-check";
import { fileName, fromFile, isObject, toFile, toParams, toRequest } from "../src/dashboard/toolfile.ts";
import type { Tool, ToolOrigin } from "../src/dashboard/types.ts";

/** Texts with what is awkward in JSON, names and paths. */
const text = fc.oneof(fc.string({ unit: "binary" }), fc.constantFrom("", " ", "__proto__", "constructor", "toString", "\uFEFF", "../a", "\ud800"));
const origin: fc.Arbitrary<ToolOrigin> = fc.oneof(fc.record({ kind: fc.constant("code" as const), code: text }), fc.record({ kind: fc.constant("path" as const), path: text }));
const json = fc.jsonValue({ maxDepth: 4 });
const keyword = fc.oneof(text, fc.constantFrom("type", "properties", "required", "items", "enum", "nullable", "optional", "$schema", "$ref"));

/** Something like a JSON Schema, as a page may declare it. */
const { schema } = fc.letrec<{ schema: unknown }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    json,
    fc.dictionary(keyword, json),
    fc.record(
      {
        type: fc.oneof(fc.constantFrom("object", "string", "array", ["string", "null"], [], ["null"]), json),
        properties: fc.oneof(fc.dictionary(text, tie("schema")), json),
        required: fc.oneof(fc.array(text), json),
        items: tie("schema"),
        enum: fc.oneof(fc.array(json), json),
      },
      { requiredKeys: [] },
    ),
  ),
}));

const tool: fc.Arbitrary<Tool> = fc.record(
  { name: text, pageName: text, title: text, description: text, inputSchema: schema, source: fc.constantFrom("host" as const, "dynamic" as const), origin },
  { requiredKeys: ["name", "pageName", "title", "description", "inputSchema", "source"] },
);

const own = (value: object, key: string): boolean => Object.prototype.hasOwnProperty.call(value, key);

/** Whether a file is read or refused, and that nothing but an Error in words comes of it. */
function read(file: string): void {
  let saved;
  try {
    saved = fromFile(file);
  } catch (error) {
    assert.equal(Object.getPrototypeOf(error), Error.prototype, `${error}`);
    const { message } = error as Error;
    assert.ok(message.length > 0 && message.length < 300, `a message of ${message.length}: ${message.slice(0, 100)}`);
    return;
  }
  assert.ok(saved.name.trim() && typeof saved.description == "string" && (saved.params === undefined || isObject(saved.params)));
  const request = toRequest(saved);
  assert.ok(own(request, "code") != own(request, "path") && !own(request, "origin"));
  assert.equal(typeof (request.code ?? request.path), "string");
  assert.ok(Object.keys(request).every((key) => ["name", "description", "params", "code", "path"].includes(key)));
}

test("whatever a file holds, it is read or refused in words", () => {
  const member = fc.oneof(json, origin, fc.constant("js-bridge-mcp-tool"), fc.constant(1));
  const file = fc.dictionary(fc.oneof(text, fc.constantFrom("format", "version", "name", "description", "params", "origin")), member);
  const nearly = fc.record({ format: fc.constant("js-bridge-mcp-tool"), version: fc.oneof(fc.constant(1), json), name: fc.oneof(text, json), description: fc.oneof(text, json), params: schema, origin: fc.oneof(origin, json) }, { requiredKeys: ["format"] });
  fc.assert(fc.property(fc.oneof(text, json.map((value) => JSON.stringify(value)), file.map((value) => JSON.stringify(value)), nearly.map((value) => JSON.stringify(value))), read), { numRuns: 2000 });
});

test("a damaged file is read or refused in words", () => {
  const cut = fc.tuple(tool, fc.nat(), fc.nat({ max: 20 }), text);
  fc.assert(
    fc.property(cut, ([tool, at, length, put]) => {
      const file = toFile(tool) ?? "";
      at %= file.length + 1;
      read(file.slice(0, at) + put + file.slice(at + length));
    }),
    { numRuns: 1000 },
  );
});

test("what nests deep or is long is read or refused in words", () => {
  for (const hostile of ["[".repeat(200_000), "[".repeat(200_000) + "]".repeat(200_000), '{"a":'.repeat(100_000) + "1" + "}".repeat(100_000), `"${"x".repeat(100_000)}"`]) {
    read(hostile);
    for (const member of ["format", "version", "name", "description", "params", "origin"]) {
      const file: Record<string, unknown> = { format: "js-bridge-mcp-tool", version: 1, name: "a", description: "", origin: { kind: "path", path: "x" } };
      delete file[member];
      read(JSON.stringify(file).replace("{", `{"${member}":${hostile},`));
    }
  }
});

test("a tool that was saved is the same again", () => {
  fc.assert(
    fc.property(tool, (tool) => {
      const file = toFile(tool);
      assert.equal(file === undefined, tool.origin === undefined);
      if (file === undefined || !tool.pageName.trim()) return;
      const params = toParams(tool.inputSchema);
      const request: Record<string, unknown> = { name: tool.pageName, description: tool.description, ...(params && { params }), ...(tool.origin!.kind == "code" ? { code: tool.origin!.code } : { path: tool.origin!.path }) };
      assert.equal(JSON.stringify(toRequest(fromFile(file))), JSON.stringify(request));
    }),
    { numRuns: 1000 },
  );
});

test("params name what the schema does, and leave the schema as it was", () => {
  fc.assert(
    fc.property(schema, (schema) => {
      const before = JSON.stringify(schema);
      const params = toParams(schema);
      assert.equal(JSON.stringify(schema), before);
      if (params === undefined || params === schema) return;
      const { properties, required } = schema as { properties: Record<string, unknown>; required?: unknown };
      assert.deepEqual(Object.keys(params), Object.keys(properties));
      for (const [name, param] of Object.entries(params)) {
        assert.ok(isObject(param));
        assert.equal(param.optional !== true, Array.isArray(required) && required.includes(name) && (properties[name] as { optional?: unknown }).optional !== true);
      }
    }),
    { numRuns: 1000 },
  );
});

test("a file's name is tame", () => {
  fc.assert(fc.property(tool, (tool) => assert.match(fileName(tool), /^[A-Za-z0-9_-]{1,64}\.tool\.json$/)), { numRuns: 1000 });
});
