/** Notices when the page declares something else. */

/** Where the page's only bridge is found. */
const KEY = Symbol.for("jsbridge");

/**
 * Tells the bridge when the page assigns one of its declarations, or changes the
 * array of tools, say, through `window`, where it is a proxy. It stays when the bridge
 * goes: the next one hears it.
 */
export function watchPage(): void {
  const changed = () => (globalThis as { [KEY]?: { changed(): void } })[KEY]?.changed();
  for (const key of ["__mcpTools", "__mcpPrompts", "__mcpResources", "__mcpSummary", "__mcpAppName"] as const) {
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
