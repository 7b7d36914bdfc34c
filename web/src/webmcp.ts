/**
 * The tools that a page gave to WebMCP: the browser's own registry of tools, or a
 * polyfill of it. Three generations are in use, and all may change again:
 *
 * - `document.modelContext` with getTools and executeTool. Chromium 156 takes the input
 *   as an object; earlier builds and the polyfills take JSON text.
 * - `navigator.modelContextTesting` with listTools, and executeTool by name.
 * - `navigator.modelContext` with the methods of the first.
 */

import type { Tool } from "./dispatch.ts";
import { isObject, messageOf } from "./readable.ts";
import { keepErrors, thrown } from "./thrown.ts";

/** A tool of WebMCP, with all that its registry tells of it. */
export interface ModelTool extends Tool {
  title?: unknown;
  description?: unknown;
  /** Always of an object, as MCP demands. */
  inputSchema: object;
  annotations?: object | undefined;
}

/** What the generations have in common. */
interface Registry {
  /** Fires `toolchange`. */
  events: any;
  list(): Promise<any[]> | any[];
  /** Resolves to text, or to null when there is none. */
  execute(listed: any, args: object, signal: AbortSignal): Promise<unknown>;
}

const HINTS = ["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"];

/** How browsers and polyfills begin when a tool threw; the latter add the message. */
const FAILED = /^Tool was executed but the invocation failed\. For example, the script function threw an error: /;

/**
 * The page's WebMCP tools, as a function that gives those of now. `changed` is called
 * after each change until `signal` aborts. Undefined when the page has no WebMCP, or
 * one whose tools can't be listed or run; the promise resolves after the first listing,
 * and never rejects: where listing is forbidden there are no tools.
 */
export function watchWebMCP(changed: () => void, signal: AbortSignal): Promise<() => Tool[]> | undefined {
  keepErrors();
  const registry = findRegistry();
  if (!registry) return;
  const { events, list, execute } = registry;
  const running = new Map<string, number>();
  let tools: ModelTool[] = [];
  let asked = 0;
  let shown = 0;
  let planned = false;
  let told = false;

  async function refresh(): Promise<boolean> {
    planned = false;
    const turn = ++asked;
    let found: ModelTool[] = [];
    try {
      found = (await list()).flatMap(toTool);
    } catch (e) {
      if (!told) console.debug("[jsbridge] WebMCP tools can't be listed: " + messageOf(e));
      told = true;
    }
    // Lists may arrive out of order.
    if (turn < shown) return false;
    shown = turn;
    tools = found;
    return true;
  }

  function plan(): void {
    if (planned || signal.aborted) return;
    planned = true;
    queueMicrotask(async () => {
      if ((await refresh()) && !signal.aborted) changed();
    });
  }

  function toTool(listed: any): ModelTool | [] {
    try {
      const { name, title, description, inputSchema, annotations } = listed;
      if (typeof name != "string" || !isOwn(listed)) return [];
      return {
        name,
        title: title || undefined,
        description,
        inputSchema: toSchema(inputSchema),
        annotations: isObject(annotations) ? Object.fromEntries(HINTS.map((hint) => [hint, annotations[hint]])) : undefined,
        fn: (args, ctx) => call(name, args, ctx.signal),
      };
    } catch {
      return [];
    }
  }

  async function call(name: string, args: object, signal: AbortSignal): Promise<unknown> {
    const before = running.get(name) ?? 0;
    running.set(name, before + 1);
    if (!before) thrown().set(name, new Set());
    try {
      // Afresh: what was registered again under its name is another tool.
      const listed = (await list()).find((tool) => isOwn(tool) && tool.name === name);
      if (!listed) throw Error(`this page no longer has the tool ${name}`);
      // Not every polyfill looks.
      signal.throwIfAborted();
      const isForm = document.querySelector(`form[toolname="${CSS.escape(name)}"]`);
      return toValue(await execute(listed, args, signal)) ?? (isForm ? "The form was submitted. The page may be navigating." : undefined);
    } catch (e: any) {
      if (e?.name != "UnknownError") throw e;
      // None when another copy of this script, on its way out, ran the tool as well.
      const errors = thrown().get(name) ?? new Set();
      for (const error of errors) {
        errors.delete(error);
        throw error;
      }
      throw FAILED.test(e.message) ? Error(e.message.replace(FAILED, "")) : e;
    } finally {
      const left = running.get(name)! - 1;
      if (left) running.set(name, left);
      else {
        running.delete(name);
        thrown().delete(name);
      }
    }
  }

  try {
    if (events.addEventListener) events.addEventListener("toolchange", plan, { signal });
    else events.registerToolsChangedCallback?.(plan);
  } catch {
    // Then the list stays as it is now.
  }
  return refresh().then(() => () => tools);
}

function findRegistry(): Registry | undefined {
  const standard = (context: any): Registry | undefined =>
    context?.getTools &&
    context.executeTool && {
      events: context,
      list: () => context.getTools(),
      execute: (listed, args, signal) => context.executeTool(listed, withText(args), { signal }),
    };
  const testing = (context: any): Registry | undefined =>
    context?.listTools && {
      events: context,
      list: () => context.listTools(),
      execute: (listed, args, signal) => context.executeTool(listed.name, JSON.stringify(args), { signal }),
    };
  try {
    const { modelContextTesting } = navigator as any;
    // The last only if all else fails: polyfills warn of it.
    return standard((document as any).modelContext) ?? testing(modelContextTesting) ?? standard((navigator as any).modelContext);
  } catch {
    return;
  }
}

/**
 * An object that becomes its JSON where text is wanted, so that one attempt suits all:
 * a second, after a TypeError, could run a tool twice, since some polyfills let the
 * tool's own through.
 */
function withText(args: object): object {
  const text = JSON.stringify(args);
  return Object.defineProperty({ ...args }, Symbol.toPrimitive, { value: () => text });
}

/** Frames of the same origin are listed too, but have a bridge of their own or none. */
const isOwn = (listed: any): boolean => !listed?.window || listed.window === window;

/** Registries take any schema, and earlier ones give it as text. */
function toSchema(schema: any): object {
  try {
    if (typeof schema == "string") schema = JSON.parse(schema);
  } catch {
    // No schema then.
  }
  if (!isObject(schema) || Array.isArray(schema)) return { type: "object" };
  const { type = "object" } = schema;
  return [type].flat().includes("object") ? { ...schema, type: "object" } : { type: "object" };
}

/** What a tool returned, from the text that registries make of it. An MCP result is known by its `content`. */
function toValue(text: unknown): unknown {
  if (text === "undefined") return;
  try {
    const value = JSON.parse(text as string);
    if (isObject(value)) return value;
  } catch {
    // Plain text.
  }
  return text ?? undefined;
}
