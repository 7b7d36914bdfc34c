/** What the functions of prompts, resources and completions returned, made into MCP's shapes. */

import { mediaTag } from "./convert.ts";
import { nextUri, readMedia } from "./media.ts";
import { isObject, readable } from "./readable.ts";

/** MCP's limit. */
const MAX_VALUES = 100;

/** A question to the client in place of an answer, which goes as it is. */
const asks = (value: unknown): boolean => isObject(value) && isObject(value.inputRequests);

/** The result of a prompt: a text, a content item, messages, or all that MCP knows. Throws for anything else. */
export async function toPrompt(value: any, limit: number): Promise<unknown> {
  if (value === undefined) throw Error("the prompt's function returned nothing: it must return a text, an MCP content item or messages");
  if (asks(value)) return readable(value);
  if (!isObject(value) || !Array.isArray(value.messages)) return { messages: await toMessages(value, limit) };
  const { description, _meta } = value;
  return { messages: await toMessages(value.messages, limit), description, _meta: readable(_meta) };
}

/** Messages of a prompt or, with lists of items allowed, of a question to the model. */
export function toMessages(value: unknown, limit: number, lists = false): Promise<object[]> {
  const toMessage = async (one: any): Promise<object> => {
    if (!isObject(one) || typeof one.type == "string" || !("content" in one)) return { role: "user", content: await toItem(one, limit) };
    const { role = "user", content } = one;
    if (role != "user" && role != "assistant") throw Error(`a message's role must be user or assistant, not ${describe(role)}`);
    return { role, content: lists && Array.isArray(content) ? await Promise.all(content.map((item) => toItem(item, limit))) : await toItem(content, limit) };
  };
  return Promise.all((Array.isArray(value) ? value : [value]).map(toMessage));
}

/** One content item. */
async function toItem(value: unknown, limit: number): Promise<unknown> {
  if (typeof value == "string") return { type: "text", text: value };
  const tag = mediaTag(value);
  if (tag) {
    const { text, blob, mimeType } = await readMedia(value, tag, limit);
    if (text != null) return { type: "text", text };
    const [kind = ""] = mimeType?.split("/") ?? [];
    if (/image|audio/.test(kind)) return { type: kind, data: blob, mimeType };
    return { type: "resource", resource: { uri: nextUri(), mimeType, blob } };
  }
  if (!isObject(value) || typeof value.type != "string") throw Error(`not a text or an MCP content item, such as {type: "text", text}: ${describe(value)}`);
  return readable(value);
}

/** The result of reading a resource: text, binary, JSON, or MCP's `contents`. `mimeType` is the declared type. */
export async function toContents(value: any, limit: number, mimeType?: string): Promise<unknown> {
  if (value === undefined) throw Error("the resource's function returned nothing: it must return text, binary, a value that JSON can hold, or {contents}");
  if (asks(value)) return readable(value);
  if (!isObject(value) || !Array.isArray(value.contents)) return { contents: [await toContent(value, limit, mimeType)] };
  const contents = value.contents.map(async (one: any) => {
    const { uri, mimeType: own = mimeType, text, blob, _meta } = one ?? {};
    if (typeof text != "string" && blob == null) throw Error("each of contents needs a text or a blob");
    const held = typeof text == "string" ? { text } : typeof blob == "string" ? { blob } : await toContent(blob, limit, own);
    return { mimeType: own, ...held, uri: uri && String(uri), _meta: readable(_meta) };
  });
  return { contents: await Promise.all(contents), _meta: readable(value._meta) };
}

async function toContent(value: unknown, limit: number, mimeType?: string): Promise<object> {
  if (typeof value == "string") return { mimeType: mimeType ?? "text/plain", text: value };
  const tag = mediaTag(value);
  if (!tag) return { mimeType: mimeType ?? "application/json", text: JSON.stringify(readable(value)) };
  const held = await readMedia(value, tag, limit, mimeType);
  return { ...held, mimeType: held.mimeType ?? "application/octet-stream" };
}

/** What a completer, an array or a function, has for a value typed so far. */
export async function completions(completer: any, value: string, given: object, signal: AbortSignal): Promise<object> {
  const begins = (text: unknown) => String(text).toLowerCase().startsWith(value.toLowerCase());
  const found = Array.isArray(completer) ? completer.filter(begins) : ((await completer?.(value, { arguments: given, signal })) ?? []);
  const all: unknown = Array.isArray(found) ? found : found.values;
  if (!Array.isArray(all)) throw Error(`complete must give an array of texts or {values}, not ${describe(found)}`);
  const more = all.length > MAX_VALUES;
  const { total = more ? all.length : undefined, hasMore = more || undefined } = found;
  return { values: all.slice(0, MAX_VALUES).map(String), total, hasMore };
}

const describe = (value: unknown) => (JSON.stringify(readable(value)) ?? typeof value).slice(0, 100);
