import assert from "node:assert/strict";
import test from "node:test";
import { add, addItem, createNode, fill, read, toField, type Fault, type Field, type Node } from "../src/dashboard/schema.ts";

const object = (properties: object, required: string[] = []) => ({ type: "object", properties, required });
const kindOf = (schema: unknown): string => {
  const field = toField(schema);
  return field.kind + (field.nullable ? "?" : "");
};

function form(schema: unknown): Node {
  return createNode(toField(schema), true);
}
function valueOf(node: Node): unknown {
  const faults: Fault[] = [];
  const value = read(node, faults);
  assert.deepEqual(faults.map((fault) => `${fault.path}: ${fault.message}`), []);
  return value;
}
const faultsOf = (node: Node): string[] => {
  const faults: Fault[] = [];
  read(node, faults);
  return faults.map((fault) => `${fault.path}: ${fault.message}`);
};
const at = (node: Node, name: string): Node => node.props.find((prop) => prop.name == name)!.node;

test("each schema has a field, what there is none for is JSON", () => {
  const table: [unknown, string][] = [
    [{ type: "string" }, "string"],
    [{ type: ["string", "null"] }, "string?"],
    [{ type: "integer" }, "number"],
    [{ type: "boolean" }, "boolean"],
    [{ enum: ["a", 1, null] }, "enum"],
    [{ const: 5 }, "const"],
    [{ oneOf: [{ const: "a", title: "A" }, { const: "b" }] }, "enum"],
    [{ anyOf: [{ type: "number" }, { type: "null" }] }, "number?"],
    [{ anyOf: [{ type: "number" }, { type: "string" }] }, "json"],
    [{ type: ["number", "string"] }, "json"],
    [{ type: "array", items: { type: "string" } }, "array"],
    [{ type: "array" }, "json"],
    [{ type: "array", items: {} }, "json"],
    [{ type: "array", prefixItems: [{}], items: { type: "string" } }, "json"],
    [object({ a: {} }), "object"],
    [{ properties: { a: {} } }, "object"],
    [{ type: "object" }, "object"],
    [{ type: "object", additionalProperties: { type: "number" } }, "json"],
    [{ allOf: [{}] }, "json"],
    [{ $ref: "#/$defs/x", $defs: { x: { type: "boolean" } } }, "boolean"],
    [{ $ref: "#/nowhere" }, "json"],
    [{ $ref: "https://example.com/x" }, "json"],
    [{ $ref: "#/__proto__/toString" }, "json"],
    [true, "json"],
    [null, "json"],
    ["text", "json"],
    [[], "json"],
    [{ type: 5 }, "json"],
    [{ type: "string", description: 5, title: {} }, "string"],
  ];
  for (const [schema, want] of table) assert.equal(kindOf(schema), want, JSON.stringify(schema));
  const inner = toField(object({ open: { type: "object" } }));
  assert.equal(inner.kind == "object" && inner.props[0]!.field.kind, "json", "an open object within one");
});

test("a schema that contains itself ends, however often it does", () => {
  const props = Object.fromEntries(Array.from({ length: 20 }, (_, i) => ["p" + i, { $ref: "#" }]));
  let fields = 0;
  (function count(field: Field): void {
    fields++;
    if (field.kind == "object") field.props.forEach((prop) => count(prop.field));
  })(toField(object(props)));
  assert.ok(fields < 12_000, String(fields));
  const loop: Record<string, unknown> = { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } } };
  assert.equal(kindOf(loop), "json");
});

test("what is not set is left out, what is required is not", () => {
  const node = form(object({ text: { type: "string" }, n: { type: "integer", default: 3 }, ok: { type: "boolean" }, later: { type: "integer", default: 7 } }, ["text", "n", "ok"]));
  assert.deepEqual(valueOf(node), { text: "", n: 3, ok: false });
  at(node, "later").text.value = "8";
  at(node, "later").set.value = true;
  assert.deepEqual(valueOf(node), { text: "", n: 3, ok: false, later: 8 });
  fill(at(node, "later"), undefined);
  assert.deepEqual(valueOf(node), { text: "", n: 3, ok: false });
  add(at(node, "later"));
  assert.equal((valueOf(node) as { later: number }).later, 7, "the default");
});

test("an example goes in and comes out", () => {
  const schema = object(
    {
      name: { type: "string" }, n: { type: "number" }, flag: { type: "boolean" }, size: { enum: ["S", { x: 1 }, null] }, kind: { const: "k" },
      note: { type: ["string", "null"] }, tags: { type: "array", items: { type: "string" } }, any: {},
      to: object({ street: { type: "string" }, lines: { type: "array", items: object({ q: { type: "integer" } }, ["q"]) } }, ["street"]),
    },
    ["name"],
  );
  for (const example of [
    { name: "x", n: -1.5, flag: true, size: { x: 1 }, kind: "k", note: null, tags: ["a", ""], any: [1, { deep: null }], to: { street: "s", lines: [{ q: 1 }, { q: 2 }] } },
    { name: "", n: 0, flag: false, size: null, note: "", tags: [], any: null },
    { name: "only" },
  ]) {
    const node = form(schema);
    fill(node, { name: "before", tags: ["b"], n: 9 });
    fill(node, example);
    assert.deepEqual(valueOf(node), example);
  }
});

test("a value that does not fit is kept, as JSON", () => {
  const node = form(object({ n: { type: "integer" }, list: { type: "array", items: { type: "string" } } }));
  fill(node, { n: "five", list: ["a", 1] });
  assert.ok(at(node, "n").raw.value);
  assert.ok(at(node, "list").items.value[1]!.raw.value);
  assert.deepEqual(valueOf(node), { n: "five", list: ["a", 1] });
  fill(node, { n: 5, more: true });
  assert.ok(node.raw.value, "names that the schema does not have");
  assert.deepEqual(valueOf(node), { n: 5, more: true });
  fill(node, { n: 6 });
  assert.ok(!node.raw.value);
  assert.deepEqual(valueOf(node), { n: 6 });
});

test("a property may be called anything", () => {
  const node = form(JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}},"required":["__proto__"]}'));
  at(node, "__proto__").text.value = "x";
  const value = valueOf(node) as object;
  assert.deepEqual(Object.entries(value), [["__proto__", "x"]]);
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
});

test("faults say where and what", () => {
  const node = form(object({ n: { type: "integer", minimum: 1, maximum: 5 }, list: { type: "array", items: { type: "number" } }, any: {} }, ["n", "any"]));
  assert.deepEqual(faultsOf(node), ["n: A whole number is needed here.", "any: JSON is needed here."]);
  at(node, "any").text.value = "{";
  at(node, "n").text.value = "1.5";
  addItem(at(node, "list"));
  addItem(at(node, "list"));
  at(node, "list").items.value[1]!.text.value = "1e3";
  assert.deepEqual(faultsOf(node), ["n: This must be a whole number.", "list[0]: A number is needed here.", "any: This is not JSON."]);
  at(node, "n").text.value = "0";
  assert.match(faultsOf(node)[0]!, /at least 1/);
  at(node, "n").text.value = "6";
  assert.match(faultsOf(node)[0]!, /at most 5/);
  for (const text of ["0x10", "Infinity", "NaN", "five"]) {
    at(node, "list").items.value[1]!.text.value = text;
    assert.equal(faultsOf(node).filter((fault) => fault.startsWith("list[1]")).length, text == "0x10" ? 0 : 1, text);
  }
});

test("null is a value of its own", () => {
  const node = form(object({ note: { type: ["string", "null"] } }, ["note"]));
  assert.deepEqual(valueOf(node), { note: "" });
  at(node, "note").isNull.value = true;
  assert.deepEqual(valueOf(node), { note: null });
});
