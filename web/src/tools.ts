/** What the page declared: read afresh each time, and watched for changes. */

import type { Tool } from "./dispatch.ts";
import { attempt, isObject, messageOf } from "./readable.ts";
import type { Problem, RegisterTools } from "./wire.ts";

const FIELDS = "name title description params inputSchema example outputSchema annotations icons timeoutMs origin".split(" ");

/** A tool as the page gave it, unjudged. */
export interface Offer {
  tool: any;
  /** From the tool bus: added at run time. */
  dynamic?: boolean;
  /** From WebMCP. */
  model?: boolean;
  /** Why it is left out. */
  problem?: string;
}

// What is no array counts as its only element, and is judged like one.
export const declared = (): Offer[] => attempt(() => [].concat((window.__mcpTools as any) ?? []).map((tool) => ({ tool }))) ?? [];

/** The tools that can be called now. One that can't even be looked at is left out. */
export const callable = (offers: Offer[]): Tool[] =>
  offers.filter(({ tool, problem }) => attempt(() => (tool.name, !problem && typeof tool.fn == "function"))).map(({ tool }) => tool);

/**
 * The manifest as a `register_tools` frame, and the tools that did not make it.
 * Apart from what only the page can see, the server judges, not this script.
 */
export function readManifest(offers: Offer[], label?: string): { frame: string; problems: Problem[] } {
  const problems: Problem[] = [];
  const tools: string[] = [];
  offers.forEach(({ tool, dynamic, problem }, index) => {
    let name = "";
    try {
      if (!isObject(tool)) throw "not an object";
      name = String(tool.name ?? "");
      if (problem) throw problem;
      if (typeof tool.fn != "function") throw "fn is missing or no function";
      const wire: Record<string, unknown> = { source: dynamic ? "dynamic" : "host" };
      for (const field of FIELDS) wire[field] = tool[field];
      tools.push(JSON.stringify(wire));
    } catch (e) {
      problems.push({ name, index, reason: messageOf(e) });
    }
  });
  // A form may have that name, too.
  const title = text(() => document.title);
  const rest: Omit<RegisterTools, "tools"> = {
    type: "register_tools",
    summary: text(() => window.__mcpSummary),
    appLabel: label || text(() => window.__mcpAppName) || title || undefined,
    url: location.href,
    title,
    problems,
  };
  // The texts are joined, so that a page's getters run once.
  return { frame: `${JSON.stringify(rest).slice(0, -1)},"tools":[${tools}]}`, problems };
}

function text(get: () => unknown): string | undefined {
  const value = attempt(get);
  return typeof value == "string" ? value : undefined;
}

/**
 * Has `changed` called when the page assigns one of its declarations, or changes the
 * array of tools through `window`, where it is a proxy. It stays when the bridge goes,
 * for the next.
 */
export function watchPage(changed: () => void): void {
  for (const key of ["__mcpTools", "__mcpSummary", "__mcpAppName"] as const) {
    const present = Object.getOwnPropertyDescriptor(window, key);
    // An accessor is ours already, or the page's own.
    if (present?.get) continue;
    let value = observe(window[key], changed);
    // A top-level `var` can't be replaced.
    if (present && !present.configurable) continue;
    Object.defineProperty(window, key, {
      configurable: true,
      enumerable: true,
      get: () => value,
      set(next) {
        // Assigning what was just read must not stack a proxy on a proxy.
        if (next !== value) value = observe(next, changed);
        changed();
      },
    });
  }
}

function observe(list: any, changed: () => void): any {
  if (!Array.isArray(list)) return list;
  const noticed =
    (act: Function) =>
    (...args: any[]) => (changed(), act(...args));
  // Assignments arrive here as definitions too.
  return new Proxy(list, { defineProperty: noticed(Reflect.defineProperty), deleteProperty: noticed(Reflect.deleteProperty) });
}
