/** `.tool.json` files: dynamic tools that are kept, and added again later. */

import type { Tool, ToolOrigin } from "./types.ts";

const FORMAT = "js-bridge-mcp-tool";
const VERSION = 1;

/** What POST /api/connections/{id}/tools takes, but for the form of its origin. */
export interface SavedTool {
  name: string;
  description: string;
  params?: Record<string, unknown>;
  origin: ToolOrigin;
}

/** The file's text. Gives undefined for tools that the page itself declares: their code is in the page. */
export function toFile(tool: Tool): string | undefined {
  if (!tool.origin) return undefined;
  const params = toParams(tool.inputSchema);
  return JSON.stringify({ format: FORMAT, version: VERSION, name: tool.pageName, description: tool.description, ...(params && { params }), origin: tool.origin }, null, 2) + "\n";
}

export const fileName = (tool: Tool): string => (tool.pageName.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, 64) || "tool") + ".tool.json";

/** Reads one file. Throws an Error that says what is wrong with it. */
export function fromFile(text: string): SavedTool {
  let file: unknown;
  try {
    file = JSON.parse(text.replace(/^\uFEFF/, ""));
  } catch {
    throw Error("This is not JSON.");
  }
  if (!isObject(file) || file.format !== FORMAT) throw Error(`This is not a saved tool: "format" must be "${FORMAT}".`);
  if (file.version !== VERSION) throw Error(`This file has version ${shown(file.version)}; this jsbridge reads version ${VERSION}.`);
  const { name, description, params, origin } = file;
  if (typeof name != "string" || !name.trim()) throw Error('"name" must be a text.');
  if (typeof description != "string") throw Error('"description" must be a text.');
  if (params !== undefined && !isObject(params)) throw Error('"params" must be an object.');
  return { name, description, ...(params && { params }), origin: readOrigin(origin) };
}

/** A version for a sentence. It may be anything, of any size. */
function shown(version: unknown): string {
  if (version === undefined) return "none";
  return typeof version == "number" || typeof version == "string" ? JSON.stringify(version).slice(0, 40) : "of another kind";
}

function readOrigin(origin: unknown): ToolOrigin {
  if (isObject(origin)) {
    if (origin.kind === "code" && typeof origin.code == "string") return { kind: "code", code: origin.code };
    if (origin.kind === "path" && typeof origin.path == "string") return { kind: "path", path: origin.path };
  }
  throw Error('"origin" must be {"kind": "code", "code": "…"} or {"kind": "path", "path": "…"}.');
}

/** The body that adds the tool. */
export function toRequest({ origin, ...tool }: SavedTool): Record<string, unknown> {
  return { ...tool, ...(origin.kind == "code" ? { code: origin.code } : { path: origin.path }) };
}

/**
 * The params that give a tool's schema. A schema that says more than params can is
 * given whole: the server takes that as well.
 */
export function toParams(schema: unknown): Record<string, unknown> | undefined {
  if (!isObject(schema) || !isObject(schema.properties)) return undefined;
  const entries = Object.entries(schema.properties);
  const plain = Object.keys(schema).every((key) => ["type", "properties", "required", "$schema"].includes(key));
  if (!plain || !entries.every(([, value]) => isObject(value) && value.type !== undefined)) return schema;
  const required = Array.isArray(schema.required) ? schema.required : [];
  return entries.length ? Object.fromEntries(entries.map(([name, value]) => [name, toParam(value as Record<string, unknown>, required.includes(name))])) : undefined;
}

function toParam(schema: Record<string, unknown>, required: boolean): Record<string, unknown> {
  const param = own(schema);
  const types = [param.type].flat().filter((type) => type !== "null");
  if (types.length < [param.type].flat().length) {
    param.nullable = true;
    if (Array.isArray(param.enum)) param.enum = param.enum.filter((value) => value !== null);
  }
  if (types.length == 1) param.type = types[0];
  if (!required) param.optional = true;
  return param;
}

/** Where params have no list of required ones, all are; a schema says so by leaving it out that none is. */
function own(schema: Record<string, unknown>): Record<string, unknown> {
  const copy = { ...schema };
  if (isObject(copy.items)) copy.items = own(copy.items);
  if (isObject(copy.properties)) {
    copy.properties = Object.fromEntries(Object.entries(copy.properties).map(([name, value]) => [name, isObject(value) ? own(value) : value]));
    copy.required ??= [];
  }
  return copy;
}

export const isObject = (value: unknown): value is Record<string, unknown> => typeof value == "object" && value !== null && !Array.isArray(value);
