/**
 * Keeps what the page's WebMCP tools throw, because browsers tell only that they threw.
 * It is a part of main.js, since it hears only of tools that are registered after it.
 */

/** What the copies of this script share. */
interface Kept {
  /** By tool, and only while a call of ours runs it: what it threw, until the call has asked for it. */
  thrown: Map<string, unknown[]>;
  /** The function last put in the place of the page's. */
  ours?: unknown;
}

const KEY = Symbol.for("jsbridge.webmcp");
const kept = ((globalThis as { [KEY]?: Kept })[KEY] ??= { thrown: new Map() });

export const { thrown } = kept;

/** More failures than this at once, of one tool, lose their messages. */
const MAX_KEPT = 32;

/**
 * Keeps what tools throw that are registered from now on. Changes nothing else for the
 * page. Does nothing the second time, or without WebMCP. Never throws.
 */
export function keepErrors(): void {
  try {
    const context = (document as any).modelContext || (navigator as any).modelContext;
    if (kept.ours == context.registerTool) return;
    kept.ours = context.registerTool = new Proxy(context.registerTool, {
      apply: (register, self, args) => Reflect.apply(register, self, args.map((arg, i) => (i ? arg : observe(arg)))),
    });
  } catch {
    // None, frozen, or forbidden: messages will be missing, no more.
  }
}

/** The tool as the registry should see it: with an `execute` that is listened to. */
function observe(tool: any): unknown {
  try {
    const copy = { ...tool };
    copy.execute = new Proxy(tool.execute, {
      apply(execute, self, args) {
        const keep = (error: unknown) => {
          const errors = thrown.get(tool.name);
          // A registry on top of another gets here twice.
          if (errors && !args[1]?.signal?.aborted && !errors.includes(error) && errors.length < MAX_KEPT) errors.push(error);
        };
        try {
          const result = Reflect.apply(execute, self, args);
          // Other thenables may do their work once more for each then().
          if (result instanceof Promise) result.catch(keep);
          return result;
        } catch (e) {
          keep(e);
          throw e;
        }
      },
    });
    // Not by prototype: accessors of a class may insist on their own object.
    return new Proxy(copy, { get: (_, key) => (copy[key] ?? tool[key]) });
  } catch {
    // No tool, as the registry will say.
    return tool;
  }
}
