/** The tool bus: tools that come and go while the page runs. */

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

/** Gets the arguments as one object, and a context with `signal`, `progress()` and `log()`. May be async. */
export type ToolFunction = (args: any, ctx: any) => unknown;

export interface BusTool extends ToolOptions {
  name: string;
  fn: ToolFunction;
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
  /** All tools in the order of registration. One whose name was taken is called `<provider>__<name>`. */
  getTools(): BusTool[];
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

  function put(key: string, entry: Entry): () => void {
    entries.set(key, entry);
    changed();
    return () => {
      // What came in its place stays.
      if (entries.get(key) != entry) return;
      entries.delete(key);
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
      mustBeName("tool", name);
      if (typeof fn != "function") throw new TypeError(`tool ${name}: fn must be a function, not ${kindOf(fn)}`);
      if (!isObject(options)) throw new TypeError(`tool ${name}: options must be an object, not ${kindOf(options)}`);
      return put("tool " + name, { provider: "tool", tools: [{ ...options, name, fn }] });
    },
    registerProvider(name, tools) {
      mustBeName("provider", name);
      if (!Array.isArray(tools)) throw new TypeError(`provider ${name}: tools must be an array, not ${kindOf(tools)}`);
      return put("provider " + name, { provider: name, tools: [...tools] });
    },
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

function mustBeName(what: string, name: unknown): void {
  if (typeof name != "string" || !name) throw new TypeError(`a ${what} needs a name: a text that is not empty, not ${kindOf(name)}`);
}

const kindOf = (value: unknown) => (value === null ? "null" : value === "" ? '""' : Array.isArray(value) ? "an array" : typeof value);
