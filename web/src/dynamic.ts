/** Tools that an agent adds while the page runs: by the path of a function, or by code. */

import { askHuman } from "./ask.ts";
import type { ToolBus, ToolFunction } from "./bus.ts";
import type { ToolContext } from "./context.ts";
import { RESERVED, type Tool } from "./dispatch.ts";
import type { Host } from "./extras.ts";
import { findOffer, sourceOf } from "./merge.ts";
import { attempt, isObject, messageOf } from "./readable.ts";
import { callable, type Offer } from "./tools.ts";

/** What a tool is made from. As JSON, it is what outlives a reload. */
export interface Recipe {
  name: string;
  description: string;
  params?: object;
  origin: Origin;
}

export type Origin = { kind: "path"; path: string } | { kind: "code"; code: string };

interface Added {
  recipe: Recipe;
  unregister(): void;
}

export interface Dynamic {
  reserved: Tool[];
  /** Puts the tools of before the reload on the bus. What is no such tool, or whose name is taken, is left out. */
  replay(): void;
  kept(): string;
}

/** The longest code, path, description and name, in characters. */
const MAX_CODE = 256 << 10;
const MAX_PATH = 1 << 10;
const MAX_DESCRIPTION = 32 << 10;
const MAX_NAME = 128;

const MAX_TOOLS = 100;

/** All that is kept, in characters: browsers allow about twice as much to a page. */
const MAX_KEPT = 2 << 20;

/** `offers` gives all tools of now. */
export function createDynamic(host: Host, bus: ToolBus, offers: () => Offer[]): Dynamic {
  const added = new Set<Added>();

  /** Those that are still there. The page may have removed or replaced some. */
  function recipes(): Recipe[] {
    try {
      const present = new Set(bus.getTools().map((tool) => attempt(() => tool.origin)));
      for (const one of added) if (!present.has(one.recipe.origin)) added.delete(one);
    } catch {
      // A bus of the page's own that fails: nothing is known.
    }
    return [...added].map(({ recipe }) => recipe);
  }

  function put(recipe: Recipe, fn: ToolFunction): Added {
    const { name, ...options } = recipe;
    const one = { recipe, unregister: bus.registerTool(name, fn, options) };
    added.add(one);
    return one;
  }

  /** Throws unless there is room for it. */
  function admit(recipe: Recipe): void {
    const { name } = recipe;
    const offer = findOffer(offers(), name);
    if (offer?.dynamic) throw Error(`this page has a tool ${name} already, added at run time: unregister it first, or choose another name`);
    if (offer) throw Error(`this page has a tool ${name} already, of its own (${sourceOf(offer)}): choose another name`);
    const others = recipes();
    if (others.length >= MAX_TOOLS) throw Error(`this page has ${MAX_TOOLS} tools added at run time, which is the limit: unregister some first`);
    if (JSON.stringify([...others, recipe]).length > MAX_KEPT) throw Error("the tools added at run time would take more than 2 MiB: unregister some first");
  }

  async function register(args: any, kind: Origin["kind"], { signal }: ToolContext): Promise<string> {
    const recipe = toRecipe({ ...args, origin: { kind, [kind]: args[kind] } });
    admit(recipe);
    const fn = toFunction(recipe.origin);
    if (args.ask) {
      await askHuman(recipe, signal);
      admit(recipe);
    }
    signal.throwIfAborted();
    const one = put(recipe, fn);
    if (host.register()) return `registered ${recipe.name}`;
    one.unregister();
    host.register();
    throw Error("with this tool the list of tools would be too large for the server");
  }

  function unregister({ toolName }: any): string {
    const all = offers();
    const offer = findOffer(all, toolName);
    if (!offer) {
      const names = callable(all.filter(({ dynamic }) => dynamic)).map(({ name }) => name);
      throw Error(`this page has no tool ${toolName}; added at run time: ${names.join(", ") || "none"}`);
    }
    if (!offer.dynamic) throw Error(`${toolName} is the page's own (${sourceOf(offer)}): only tools added at run time can be removed`);
    const mine = [...added].find(({ recipe }) => recipe.origin === offer.tool.origin);
    if (mine) mine.unregister();
    else if (!bus.unregisterTool?.(toolName)) throw Error(`the page's own tool bus can't remove ${toolName}`);
    host.register();
    return `unregistered ${toolName}`;
  }

  return {
    reserved: [
      { name: "__register_tool_by_path__", fn: (args, ctx) => register(args, "path", ctx) },
      { name: "__register_tool_by_code__", fn: (args, ctx) => register(args, "code", ctx) },
      { name: "__unregister_tool__", fn: unregister },
    ],
    replay() {
      for (const recipe of parse(host.kept)) {
        const { name, origin } = recipe;
        try {
          // Another copy of this script, gone now, may have put it there.
          const offer = findOffer(offers(), name);
          if (offer?.dynamic && JSON.stringify(offer.tool.origin) == JSON.stringify(origin)) bus.unregisterTool?.(name);
          admit(recipe);
          put(recipe, origin.kind == "path" ? byPath(origin.path) : byCode(origin.code));
        } catch (e) {
          console.warn(`[jsbridge] ${name}, added before the reload, is left out: ${messageOf(e)}`);
        }
      }
    },
    kept: () => (isNobody() || !recipes().length ? "" : JSON.stringify(recipes())),
  };
}

/** Sandboxed, or a file: its storage, if any, may be that of others. */
const isNobody = () => location.origin == "null";

function parse(kept: string): Recipe[] {
  if (isNobody() || !kept) return [];
  try {
    return JSON.parse(kept).slice(0, MAX_TOOLS).flatMap((value: unknown) => {
      try {
        return toRecipe(value);
      } catch {
        return [];
      }
    });
  } catch {
    return [];
  }
}

/** Takes what may be anything. Throws what is wrong with it. */
function toRecipe(value: any): Recipe {
  const { name, description, params, origin } = value;
  mustBeText("name", name, MAX_NAME);
  if (RESERVED.test(name)) throw Error(`the name ${name} is reserved`);
  mustBeText("description", description, MAX_DESCRIPTION);
  if (params != null && (!isObject(params) || Array.isArray(params))) throw Error("params must be an object that maps names to {type, description?, ...}");
  const base = { name, description, ...(params && { params }) };
  if (origin.kind == "path") {
    mustBeText("path", origin.path, MAX_PATH);
    return { ...base, origin: { kind: "path", path: origin.path } };
  }
  if (origin.kind != "code") throw Error("a tool is made by path or by code");
  mustBeText("code", origin.code, MAX_CODE);
  return { ...base, origin: { kind: "code", code: origin.code } };
}

function mustBeText(what: string, value: unknown, max: number): void {
  if (typeof value != "string" || !value.trim()) throw Error(`${what} is missing: it must be a text that is not empty`);
  if (value.length > max) throw Error(`${what} has ${value.length} characters, the limit is ${max}`);
}

/** Throws when it can't work now. */
function toFunction(origin: Origin): ToolFunction {
  if (origin.kind == "code") {
    const run = compile(origin.code);
    return (args) => run(args, document, window);
  }
  resolve(origin.path);
  return byPath(origin.path);
}

/** Looks the function up at each call: an app may replace it, or not have it yet. */
function byPath(path: string): ToolFunction {
  return (args, ctx) => {
    const [owner, fn] = resolve(path);
    return Reflect.apply(fn, owner, [args, ctx]);
  };
}

/** As the last one, for code. */
function byCode(code: string): ToolFunction {
  let run: Function | undefined;
  return (args) => (run ??= compile(code))(args, document, window);
}

/** The function at a path such as `myApp.save`, and what it is called on. */
function resolve(path: string): [owner: unknown, fn: Function] {
  let owner: any;
  let value: any = window;
  let walked = "window";
  for (const part of path.split(".")) {
    if (value == null || !(part in Object(value))) {
      const hint = walked == "window" ? ": what a script declares with let, const or class is not there" : "";
      throw Error(`${path}: ${walked} ${value == null ? `is ${value}` : `has no ${part}`}${hint}`);
    }
    owner = value;
    value = owner[part];
    walked = walked == "window" ? part : `${walked}.${part}`;
  }
  if (typeof value != "function") throw Error(`${path} is no function but ${value === null ? "null" : typeof value}`);
  return [owner, value];
}

const AsyncFunction = (async () => {}).constructor as FunctionConstructor;

function compile(code: string): Function {
  try {
    return new AsyncFunction("args", "document", "window", code);
  } catch (e: any) {
    const message = messageOf(e);
    const instead = "Register a function that the page has by its path, or have the page declare the tool";
    if (/trusted ?type/i.test(message)) throw Error(`this page allows no code from text: it requires Trusted Types. ${instead}`);
    if (e?.name == "EvalError") throw Error(`this page's CSP allows no code from text: its script-src lacks 'unsafe-eval'. ${instead}`);
    throw e;
  }
}
