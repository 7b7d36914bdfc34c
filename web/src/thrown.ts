/**
 * Keeps what the page's WebMCP tools throw, because browsers tell only that they threw.
 * No part of the extras, since it hears only of tools that are registered after it.
 */

import { attempt } from "./readable.ts";

/** What the copies of this script share. */
interface Kept {
  /** By tool, and only while a call of ours runs it: what it threw, until the call has asked for it. A registry on top of another tells all twice. */
  thrown: Map<string, Set<unknown>>;
  /** The function last put in the place of the page's. */
  ours?: unknown;
}

const KEY = Symbol.for("jsbridge.webmcp");
const shared = (): Kept => ((globalThis as { [KEY]?: Kept })[KEY] ??= { thrown: new Map() });

export const thrown = () => shared().thrown;

/**
 * Keeps what tools throw that are registered from now on. Changes nothing else for the
 * page, and nothing at all the second time. Gives what the page registers them with, if
 * it has WebMCP. Never throws.
 */
export function keepErrors(): object | undefined {
  const context: any = attempt(() => (document as any).modelContext || (navigator as any).modelContext);
  // None, frozen, or forbidden: messages will be missing, no more.
  attempt(() => {
    const kept = shared();
    if (kept.ours == context.registerTool) return;
    kept.ours = context.registerTool = new Proxy(context.registerTool, {
      apply: (register, self, args) => Reflect.apply(register, self, args.map((arg, i) => (i ? arg : observe(arg)))),
    });
  });
  return context;
}

/** The tool as the registry should see it: with an `execute` that is listened to. */
const observe = (tool: any): unknown =>
  attempt(() => {
    const copy = { ...tool };
    const { name } = tool;
    copy.execute = new Proxy(tool.execute, {
      // As good as the original's promise or value: a registry awaits either.
      async apply(execute, self, args) {
        try {
          return await Reflect.apply(execute, self, args);
        } catch (e) {
          const errors = thrown().get(name);
          // More than that at once lose their messages.
          if (errors && errors.size < 32 && !args[1]?.signal?.aborted) errors.add(e);
          throw e;
        }
      },
    });
    // Not by prototype: accessors of a class may insist on their own object.
    return new Proxy(copy, { get: (_, key) => (copy[key] ?? tool[key]) });
    // Or it is no tool, as the registry will say.
  }) ?? tool;
