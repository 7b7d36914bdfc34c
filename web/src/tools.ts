/** What the page declared: read afresh each time. */

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

/** What else the page declared: members of the frame as JSON, each with a comma before it. */
export interface Declared {
  members: string;
  problems: Problem[];
}

// What is no array counts as its only element, and is judged like one.
export const declared = (key: "__mcpTools" | "__mcpPrompts" | "__mcpResources" = "__mcpTools"): Offer[] =>
  attempt(() => [].concat((window[key] as any) ?? []).map((tool) => ({ tool }))) ?? [];

/** The tools that can be called now. One that can't even be looked at is left out. */
export const callable = (offers: Offer[]): Tool[] =>
  offers.filter(({ tool, problem }) => attempt(() => (tool.name, !problem && typeof tool.fn == "function"))).map(({ tool }) => tool);

/**
 * The manifest as a `register_tools` frame, and the tools that did not make it.
 * Apart from what only the page can see, the server judges, not this script.
 */
export function readManifest(offers: Offer[], label?: string, more?: Declared): { frame: string; problems: Problem[] } {
  const problems = [...(more?.problems ?? [])];
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
  return { frame: `${JSON.stringify(rest).slice(0, -1)},"tools":[${tools}]${more?.members ?? ""}}`, problems };
}

function text(get: () => unknown): string | undefined {
  const value = attempt(get);
  return typeof value == "string" ? value : undefined;
}
