/**
 * Forms from JSON Schema. A library would do more, but those that are well kept bring a
 * validator that compiles code, which the page's security policy forbids, or
 * write HTML, which it forbids as well; and each is larger than all of this page.
 */

import { signal, type Signal } from "@preact/signals";
import { isObject } from "./toolfile.ts";

type Schema = Record<string, unknown>;

interface Common {
  title: string;
  description: string;
  nullable: boolean;
  default?: unknown;
}

export type Field = Common &
  (
    | { kind: "string"; format: string; secret: boolean }
    | { kind: "number"; integer: boolean; min?: number; max?: number }
    | { kind: "boolean" }
    | { kind: "enum"; options: { value: unknown; label: string }[] }
    | { kind: "const"; value: unknown }
    | { kind: "array"; item: Field; max: number }
    | { kind: "object"; props: Prop[] }
    /** What this form has no means for: JSON, with what the schema says as help. */
    | { kind: "json"; schema: unknown }
  );

export interface Prop {
  name: string;
  required: boolean;
  field: Field;
}

const MAX_DEPTH = 8;
const MAX_PROPS = 200;
/** A schema that refers to itself twice grows with the power of the depth. */
const MAX_FIELDS = 500;

/** What is the same all over a schema. */
interface Whole {
  root: unknown;
  left: number;
}

/** Reads a schema. Whatever it is, there is a field for it. */
export const toField = (schema: unknown): Field => convert(schema, { root: schema, left: MAX_FIELDS }, 0);

function convert(schema: unknown, whole: Whole, depth: number): Field {
  const { root } = whole;
  const s = isObject(schema) ? resolve(schema, root) : {};
  const common: Common = { title: text(s.title), description: text(s.description), nullable: false, ...("default" in s && { default: s.default }) };
  const json = (): Field => ({ ...common, kind: "json", schema });
  if (depth > MAX_DEPTH || whole.left-- < 1) return json();
  if ("const" in s) return { ...common, kind: "const", value: s.const };
  if (Array.isArray(s.enum) && s.enum.length) return { ...common, kind: "enum", options: s.enum.map((value) => ({ value, label: show(value) })) };
  const branches = s.anyOf ?? s.oneOf;
  if (Array.isArray(branches)) return fromBranches(branches, s, common, whole, depth) ?? json();
  if (s.allOf || s.not || s.if || s.patternProperties || s.$ref || s.$dynamicRef) return json();
  const types = [s.type ?? inferred(s)].flat();
  const rest = types.filter((type) => type !== "null");
  if (rest.length != 1) return json();
  common.nullable = rest.length < types.length;
  switch (rest[0]) {
    case "string":
      return { ...common, kind: "string", format: text(s.format), secret: s.writeOnly === true || s.format === "password" };
    case "number":
    case "integer":
      return { ...common, kind: "number", integer: rest[0] == "integer", ...(typeof s.minimum == "number" && { min: s.minimum }), ...(typeof s.maximum == "number" && { max: s.maximum }) };
    case "boolean":
      return { ...common, kind: "boolean" };
    case "array":
      if (!isObject(s.items) || !Object.keys(s.items).length || s.prefixItems || s.contains) return json();
      return { ...common, kind: "array", item: convert(s.items, whole, depth + 1), max: typeof s.maxItems == "number" ? s.maxItems : Infinity };
    case "object":
      return fromObject(s, common, whole, depth) ?? json();
  }
  return json();
}

function fromObject(s: Schema, common: Common, whole: Whole, depth: number): Field | undefined {
  const props = isObject(s.properties) ? Object.entries(s.properties) : [];
  // An open object can't be told by fields. At the top it is one that takes nothing.
  if (isObject(s.additionalProperties) || props.length > MAX_PROPS || (!props.length && depth)) return undefined;
  const required = Array.isArray(s.required) ? s.required : [];
  return { ...common, kind: "object", props: props.map(([name, value]) => ({ name, required: required.includes(name), field: convert(value, whole, depth + 1) })) };
}

/** Of alternatives, those that are one thing or null, and those that are a list of values. */
function fromBranches(branches: unknown[], s: Schema, common: Common, whole: Whole, depth: number): Field | undefined {
  const all = branches.map((branch) => (isObject(branch) ? resolve(branch, whole.root) : {}));
  const rest = all.filter((branch) => branch.type !== "null");
  if (rest.length && all.every((branch) => "const" in branch)) {
    return { ...common, kind: "enum", options: all.map((branch) => ({ value: branch.const, label: text(branch.title) || show(branch.const) })) };
  }
  if (rest.length != 1 || s.properties) return undefined;
  const field = convert(rest[0], whole, depth + 1);
  const nullable = field.nullable || rest.length < all.length;
  return { ...field, title: common.title || field.title, description: common.description || field.description, nullable, ...("default" in common && { default: common.default }) };
}

/** Follows references within the schema. */
function resolve(schema: Schema, root: unknown): Schema {
  for (let i = 0; i < 10 && typeof schema.$ref == "string" && schema.$ref.startsWith("#"); i++) {
    const { $ref, ...rest } = schema;
    let target: unknown = root;
    for (const part of ($ref as string).split("/").slice(1)) {
      const key = part.replace(/~1/g, "/").replace(/~0/g, "~");
      target = isObject(target) && Object.hasOwn(target, key) ? target[key] : undefined;
    }
    if (!isObject(target)) break;
    schema = { ...target, ...rest };
  }
  return schema;
}

function inferred(s: Schema): string | undefined {
  return s.properties ? "object" : s.items ? "array" : undefined;
}

const text = (value: unknown): string => (typeof value == "string" ? value : "");
const show = (value: unknown): string => (typeof value == "string" ? value : JSON.stringify(value));

/** One place of a form, with what was entered there. */
export interface Node {
  readonly field: Field;
  readonly required: boolean;
  /** Whether there is a value. Always so for what is required. */
  readonly set: Signal<boolean>;
  readonly isNull: Signal<boolean>;
  /** What was typed: of strings, numbers, JSON. Of booleans "true" or "false", of enums the option's number. */
  readonly text: Signal<string>;
  /** Edited as JSON: the field is of kind json, or its value did not fit. */
  readonly raw: Signal<boolean>;
  readonly items: Signal<Node[]>;
  readonly props: { name: string; node: Node }[];
  /** Tells rows of a list apart. */
  readonly key: number;
}

let keys = 0;

export function createNode(field: Field, required: boolean): Node {
  const node: Node = {
    field,
    required,
    set: signal(required),
    isNull: signal(false),
    text: signal(""),
    raw: signal(field.kind == "json"),
    items: signal([]),
    props: field.kind == "object" ? field.props.map((prop) => ({ name: prop.name, node: createNode(prop.field, prop.required) })) : [],
    key: ++keys,
  };
  if (required) initial(node);
  return node;
}

/** What a value of the field begins as, when there has to be one. */
function initial(node: Node): void {
  const { field } = node;
  if (field.default !== undefined) return fill(node, field.default);
  if (field.kind == "boolean") node.text.value = "false";
  if (field.kind == "enum") node.text.value = "0";
}

/** Puts a value where there was none yet. */
export function add(node: Node): void {
  if (!node.set.peek()) initial(node);
  node.set.value = true;
}

export function addItem(node: Node): void {
  if (node.field.kind != "array") return;
  node.set.value = true;
  node.items.value = [...node.items.peek(), createNode(node.field.item, true)];
}

/** Takes a value in; undefined empties. What has no place among the fields is shown as JSON. */
export function fill(node: Node, value: unknown): void {
  const { field } = node;
  node.set.value = node.required || value !== undefined;
  node.isNull.value = value === null && field.nullable;
  node.raw.value = field.kind == "json";
  if (value === undefined) {
    node.text.value = "";
    node.items.value = [];
    for (const { node: child } of node.props) fill(child, undefined);
    if (node.required) initial(node);
    return;
  }
  if (node.isNull.peek() || fits(node, value)) return;
  node.raw.value = true;
  node.text.value = JSON.stringify(value, null, 2);
}

function fits(node: Node, value: unknown): boolean {
  const { field } = node;
  switch (field.kind) {
    case "string":
      if (typeof value != "string") return false;
      node.text.value = value;
      return true;
    case "number":
      if (typeof value != "number") return false;
      node.text.value = String(value);
      return true;
    case "boolean":
      if (typeof value != "boolean") return false;
      node.text.value = String(value);
      return true;
    case "enum": {
      const at = field.options.findIndex((option) => JSON.stringify(option.value) === JSON.stringify(value));
      if (at >= 0) node.text.value = String(at);
      return at >= 0;
    }
    case "const":
      return JSON.stringify(field.value) === JSON.stringify(value);
    case "array":
      if (!Array.isArray(value) || value.length > MAX_PROPS) return false;
      node.items.value = value.map((one) => {
        const item = createNode(field.item, true);
        fill(item, one);
        return item;
      });
      return true;
    case "object":
      if (!isObject(value) || Object.keys(value).some((key) => !field.props.some((prop) => prop.name === key))) return false;
      for (const { name, node: child } of node.props) fill(child, Object.hasOwn(value, name) ? value[name] : undefined);
      return true;
  }
  return false;
}

/** What is wrong with a form: where, by names and indices, and why. */
export interface Fault {
  node: Node;
  path: string;
  message: string;
}

/** The form's value; undefined where nothing is set. Faults are added to the list. */
export function read(node: Node, faults: Fault[], path = ""): unknown {
  if (!node.set.value) return undefined;
  if (node.isNull.value) return null;
  const fault = (message: string): undefined => void faults.push({ node, path, message });
  const entered = node.text.value;
  if (node.raw.value) {
    try {
      return JSON.parse(entered);
    } catch {
      return fault(entered.trim() ? "This is not JSON." : "JSON is needed here.");
    }
  }
  const { field } = node;
  switch (field.kind) {
    case "string":
      return entered;
    case "number": {
      const value = Number(entered);
      if (!entered.trim() || !Number.isFinite(value)) return fault(field.integer ? "A whole number is needed here." : "A number is needed here.");
      if (field.integer && !Number.isInteger(value)) return fault("This must be a whole number.");
      if (field.min !== undefined && value < field.min) return fault(`This must be at least ${field.min}.`);
      if (field.max !== undefined && value > field.max) return fault(`This must be at most ${field.max}.`);
      return value;
    }
    case "boolean":
      return entered == "true";
    case "enum":
      return field.options[Number(entered)]?.value;
    case "const":
      return field.value;
    case "array":
      return node.items.value.map((item, i) => read(item, faults, `${path}[${i}]`) ?? null);
    case "object": {
      // Not {}: a property may be called __proto__.
      const entries = node.props.map(({ name, node: child }): [string, unknown] => [name, read(child, faults, path ? `${path}.${name}` : name)]);
      return Object.fromEntries(entries.filter(([, value]) => value !== undefined));
    }
  }
  return undefined;
}
