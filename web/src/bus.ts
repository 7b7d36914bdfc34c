/** The tool bus: tools, prompts and resources that come and go while the page runs. */

import { attempt, isObject } from "./readable.ts";

/** What a tool can say of itself, besides its name. */
export interface ToolOptions {
  description?: string | undefined;
  /** Maps each parameter's name to `{type, description?, optional?, ...}`. */
  params?: object | undefined;
  /** A JSON Schema with an object at the top, in place of `params`. */
  inputSchema?: object | undefined;
  example?: unknown;
  title?: string | undefined;
  outputSchema?: object | undefined;
  annotations?: object | undefined;
  icons?: readonly object[] | undefined;
  /** How long a call may take, in milliseconds. Default: the server's limit. */
  timeoutMs?: number | undefined;
  /** What a tool added by an agent was made from. */
  origin?: object | undefined;
}

/** Gets the arguments as one object, and a ToolContext. May be async. */
export type ToolFunction = (args: any, ctx: any) => unknown;

export interface BusTool extends ToolOptions {
  name: string;
  fn: ToolFunction;
}

/** What completes a value typed so far: the choices, or a function that gives them. May be async. */
export type Completer =
  | readonly string[]
  | ((value: string, given: { arguments: Record<string, string>; signal: AbortSignal }) => CompletedValues | Promise<CompletedValues>);

/** At most 100 are used. `total` and `hasMore` tell how many more there are. */
export type CompletedValues = readonly string[] | { values: readonly string[]; total?: number; hasMore?: boolean };

/** An argument of a prompt. Its value is a text. */
export interface PromptArgument {
  name: string;
  title?: string | undefined;
  description?: string | undefined;
  /** Default: false. */
  required?: boolean | undefined;
  complete?: Completer | undefined;
}

/** What a prompt can say of itself, besides its name. */
export interface PromptOptions {
  title?: string | undefined;
  description?: string | undefined;
  arguments?: readonly PromptArgument[] | undefined;
  icons?: readonly object[] | undefined;
  /** How long a call may take, in milliseconds. Default: the server's limit. */
  timeoutMs?: number | undefined;
}

/**
 * Gets the arguments by name, and a ToolContext. May be async. Gives a text, an MCP content item, an array of these and
 * of messages `{role: "user" | "assistant", content}`, or `{messages, description?, _meta?}`.
 */
export type PromptFunction = (args: any, ctx: any) => unknown;

export interface BusPrompt extends PromptOptions {
  name: string;
  fn: PromptFunction;
}

/** What a resource, or a template of resources, can say of itself. */
export interface ResourceOptions {
  /** Default: the URI or template. */
  name?: string | undefined;
  title?: string | undefined;
  description?: string | undefined;
  /** Default: by what `fn` returns. */
  mimeType?: string | undefined;
  /** In bytes. Not of a template. */
  size?: number | undefined;
  /** MCP's `{audience?, priority?, lastModified?}`. */
  annotations?: object | undefined;
  icons?: readonly object[] | undefined;
  /** How long a call may take, in milliseconds. Default: the server's limit. */
  timeoutMs?: number | undefined;
  /** For a template's variables. */
  complete?: Record<string, Completer> | undefined;
  /** Called when the first client watches a URI: `notify()` tells that it has changed. May give a function that ends it. */
  subscribe?: ((notify: () => void, what: { uri: string; variables: Record<string, string> }) => unknown) | undefined;
}

/**
 * Gets the template's variables by name, and a ResourceContext. May be async. Gives text, a Blob, ArrayBuffer, typed array, canvas
 * or other picture, any other value that JSON can hold, or MCP's `{contents: [{uri?, mimeType?, text | blob}], _meta?}`.
 */
export type ResourceFunction = (variables: any, ctx: any) => unknown;

/** It has `uri` or `uriTemplate`. */
export interface BusResource extends ResourceOptions {
  uri?: string;
  uriTemplate?: string;
  fn: ResourceFunction;
}

export interface ToolBus {
  /**
   * Adds a tool, in place of an earlier one of that name. Gives a function that removes it.
   *
   * @throws TypeError for a name that is no text or empty, an `fn` that is no function, options that are no object.
   */
  registerTool(name: string, fn: ToolFunction, options?: ToolOptions): () => void;
  /**
   * Adds a set of tools, in place of the provider's earlier one. Gives a function that removes it.
   * A bad tool among them is skipped, and named in the page's console and to the agent.
   *
   * @throws TypeError for a name that is no text or empty, `tools` that are no array.
   */
  registerProvider(name: string, tools: readonly BusTool[]): () => void;
  /** As `registerTool`, for a prompt. */
  registerPrompt(name: string, fn: PromptFunction, options?: PromptOptions): () => void;
  /**
   * As `registerTool`, for a resource. A text with `{...}` is a URI template (RFC 6570). What is relative, such as `cart` or
   * `item/{id}`, is published below the page's prefix.
   */
  registerResource(uriOrTemplate: string, fn: ResourceFunction, options?: ResourceOptions): () => void;
  /** Tells that a resource has changed: by its URI as registered, or as the template gives it. Nobody hears it while the page has no connection. */
  resourceUpdated(uri: string): void;
  /** All tools in the order of registration. One whose name was taken is called `<provider>__<name>`. */
  getTools(): BusTool[];
  getPrompts(): BusPrompt[];
  getResources(): BusResource[];
  /** Has `listener` called once after all changes of a turn. Gives a function that ends it. */
  onChange(listener: () => void): () => void;
  /** Removes the tool that `getTools()` gives this name. False when there is none. */
  unregisterTool(name: string): boolean;
}

/** Tools of one registration. A lone tool is a set of one. */
interface Entry {
  provider: string;
  tools: BusTool[];
}

/** The page's bus, made if it has none yet. Copies of this script share it. */
export function installToolBus(): ToolBus {
  const present = attempt(() => {
    const found: any = window.__mcpToolBus;
    return ["registerTool", "registerProvider", "getTools", "onChange"].every((name) => typeof found[name] == "function") && found;
  });
  if (present) return present;
  const bus = createBus();
  // Where the page forbids it, this one is for whoever asked.
  attempt(() => (window.__mcpToolBus = bus));
  return bus;
}

/** A bus of its own. */
export function createBus(): ToolBus {
  const entries = new Map<string, Entry>();
  const prompts = new Map<string, BusPrompt>();
  const resources = new Map<string, BusResource>();
  const listeners = new Set<() => void>();
  let planned = false;

  function changed(): void {
    if (!planned) queueMicrotask(notify);
    planned = true;
  }

  function notify(): void {
    planned = false;
    for (const listener of [...listeners]) {
      try {
        if (listeners.has(listener)) listener();
      } catch (e) {
        console.error("[jsbridge] a listener of the tool bus failed:", e);
      }
    }
  }

  function put<T>(into: Map<string, T>, key: string, entry: T): () => void {
    into.set(key, entry);
    changed();
    return () => {
      // What came in its place stays.
      if (into.get(key) != entry) return;
      into.delete(key);
      changed();
    };
  }

  /** Each tool under the name that it is given, and where it is. */
  function listed(): [tool: BusTool, key: string, index: number][] {
    const taken = new Set<string>();
    const list: [BusTool, string, number][] = [];
    for (const [key, { provider, tools }] of entries) {
      tools.forEach((tool, index) => {
        const name = nameOf(tool);
        let free = name;
        for (let n = 1; name && taken.has(free); n++) free = `${provider}__${name}${n > 1 ? n : ""}`;
        taken.add(free);
        list.push([free == name ? tool : renamed(tool, free), key, index]);
      });
    }
    return list;
  }

  return {
    registerTool(name, fn, options = {}) {
      mustBeWhole("tool", name, fn, options);
      return put(entries, "tool " + name, { provider: "tool", tools: [{ ...options, name, fn }] });
    },
    registerProvider(name, tools) {
      mustBeName("provider", name);
      if (!Array.isArray(tools)) throw new TypeError(`provider ${name}: tools must be an array, not ${kindOf(tools)}`);
      return put(entries, "provider " + name, { provider: name, tools: [...tools] });
    },
    registerPrompt(name, fn, options = {}) {
      mustBeWhole("prompt", name, fn, options);
      return put(prompts, name, { ...options, name, fn });
    },
    registerResource(uri, fn, options = {}) {
      mustBeWhole("resource", uri, fn, options);
      return put(resources, uri, { ...options, [/\{.*\}/.test(uri) ? "uriTemplate" : "uri"]: uri, fn });
    },
    resourceUpdated(uri) {
      mustBeName("resource", uri);
      window.__mcpResourceUpdated?.(uri);
    },
    getPrompts: () => [...prompts.values()],
    getResources: () => [...resources.values()],
    getTools: () => listed().map(([tool]) => tool),
    onChange(listener) {
      if (typeof listener != "function") throw new TypeError("onChange needs a function, not " + kindOf(listener));
      // So that the same function given twice is two listeners.
      const own = () => listener();
      listeners.add(own);
      return () => void listeners.delete(own);
    },
    unregisterTool(name) {
      const found = listed().find(([tool]) => name && nameOf(tool) === name);
      if (!found) return false;
      const [, key, index] = found;
      const { tools } = entries.get(key)!;
      tools.splice(index, 1);
      if (!tools.length) entries.delete(key);
      changed();
      return true;
    },
  };
}

/** Leaves the rest to the tool, which may be an object of a class. One without a function stays so. */
const renamed = (tool: BusTool, name: string): BusTool =>
  Object.create(tool, {
    name: { value: name, enumerable: true },
    ...(attempt(() => typeof tool.fn == "function") && { fn: { value: (args: any, ctx: any) => tool.fn(args, ctx), enumerable: true } }),
  });

/** `""` for what has none, which no two tools share. */
const nameOf = (tool: any): string => attempt(() => (typeof tool.name == "string" ? tool.name : "")) ?? "";

function mustBeWhole(what: string, name: unknown, fn: unknown, options: unknown): void {
  mustBeName(what, name);
  if (typeof fn != "function") throw new TypeError(`${what} ${name}: fn must be a function, not ${kindOf(fn)}`);
  if (!isObject(options)) throw new TypeError(`${what} ${name}: options must be an object, not ${kindOf(options)}`);
}

function mustBeName(what: string, name: unknown): void {
  if (typeof name != "string" || !name) throw new TypeError(`a ${what} needs a name: a text that is not empty, not ${kindOf(name)}`);
}

const kindOf = (value: unknown) => (value === null ? "null" : value === "" ? '""' : Array.isArray(value) ? "an array" : typeof value);
