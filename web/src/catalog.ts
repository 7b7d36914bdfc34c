/** The prompts and resources of the page, of `__mcpPrompts` and `__mcpResources` and of the tool bus: read afresh each time. */

import type { ToolBus } from "./bus.ts";
import { attempt, isObject, messageOf } from "./readable.ts";
import { declared, type Declared, type Offer } from "./tools.ts";
import type { Problem } from "./wire.ts";

export type Kind = NonNullable<Problem["kind"]>;

export interface Catalog {
  /** Members of the register frame. Never throws. */
  declare(): Declared;
  /** The prompt of that name, or the resource of that URI or template, in the page's own form. Throws when there is none. */
  find(kind: Kind, key: string): any;
  /** All resources that can be read now. Never throws. */
  resources(): any[];
}

const COMMON = ["name", "title", "description", "icons", "timeoutMs"];
const OF_RESOURCES = [...COMMON, "mimeType", "annotations"];
const OF_ARGUMENTS = ["name", "title", "description", "required"];

const NAMES = { prompt: "__mcpPrompts", resource: "__mcpResources" } as const;

export function createCatalog(bus: ToolBus): Catalog {
  /** The bus may be the page's own, or an older one that has none. */
  const added = (kind: Kind): unknown[] => attempt(() => [...(kind == "prompt" ? bus.getPrompts() : bus.getResources())]) ?? [];

  /** In the order of precedence. */
  function offers(kind: Kind): Offer[] {
    const own = declared(NAMES[kind]);
    const taken = new Set(own.filter(({ tool }) => isUsable(tool)).map(({ tool }) => keyOf(kind, tool)));
    const problem = `the name is taken by a ${kind} of ${NAMES[kind]}`;
    return [...own, ...added(kind).map((tool) => ({ tool, dynamic: true, ...(taken.has(keyOf(kind, tool)) && { problem }) }))];
  }

  const usable = (kind: Kind): any[] =>
    offers(kind)
      .filter(({ tool, problem }) => !problem && isUsable(tool))
      .map(({ tool }) => tool);

  return {
    declare() {
      const problems: Problem[] = [];
      const lists: Record<string, string[]> = {};
      for (const kind of ["prompt", "resource"] as const) {
        offers(kind).forEach(({ tool, dynamic, problem }, index) => {
          try {
            if (!isObject(tool)) throw "not an object";
            if (problem) throw problem;
            if (typeof tool.fn != "function") throw "fn is missing or no function";
            const [list, wire] = kind == "prompt" ? ["prompts", promptOf(tool)] : resourceOf(tool);
            (lists[list] ??= []).push(JSON.stringify({ source: dynamic ? "dynamic" : "host", ...wire }));
          } catch (e) {
            problems.push({ kind, name: keyOf(kind, tool), index, reason: messageOf(e) });
          }
        });
      }
      const members = Object.entries(lists).map(([list, items]) => `,"${list}":[${items}]`);
      return { members: members.join(""), problems };
    },
    find(kind, key) {
      const all = usable(kind);
      // Of equal names the server takes the last.
      const found = all.filter((one) => keyOf(kind, one) === key).pop();
      if (!found) throw Error(`this page has no ${kind} ${key}, only: ${all.map((one) => keyOf(kind, one))}`);
      return found;
    },
    resources: () => usable("resource"),
  };
}

/** What names it. `""` for what can't be looked at. */
const keyOf = (kind: Kind, value: any): string => attempt(() => String((kind == "prompt" ? value.name : (value.uri ?? value.uriTemplate)) ?? "")) ?? "";

const isUsable = (value: any): boolean => attempt(() => typeof value.fn == "function") ?? false;

function pick(from: any, fields: string[]): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const field of fields) out[field] = from[field];
  return out;
}

/** As it goes on the wire. Apart from what only the page can see, the server judges. */
function promptOf(prompt: any): object {
  const { arguments: given } = prompt;
  const argumentOf = (one: any) => (isObject(one) ? { ...pick(one, OF_ARGUMENTS), ...(completes(one.complete, one.name) && { complete: true }) } : one);
  return { ...pick(prompt, COMMON), arguments: Array.isArray(given) ? given.map(argumentOf) : given };
}

function resourceOf(resource: any): [list: string, wire: object] {
  const { uri, uriTemplate, name, subscribe } = resource;
  if ((uri == null) == (uriTemplate == null)) throw "needs either uri or uriTemplate";
  if (subscribe != null && typeof subscribe != "function") throw "subscribe must be a function";
  const wire = { ...pick(resource, OF_RESOURCES), name: name ?? uri ?? uriTemplate };
  if (uri != null) return ["resources", { ...wire, uri, size: resource.size }];
  const complete = resource.complete ?? {};
  if (!isObject(complete)) throw "complete must be an object that maps variables to arrays or functions";
  const variables = Object.keys(complete).filter((variable) => completes(complete[variable], variable));
  return ["resourceTemplates", { ...wire, uriTemplate, ...(variables.length && { complete: variables }) }];
}

function completes(completer: unknown, name: unknown): boolean {
  if (completer == null) return false;
  if (!Array.isArray(completer) && typeof completer != "function") throw `complete of ${name} must be an array or a function`;
  return true;
}
