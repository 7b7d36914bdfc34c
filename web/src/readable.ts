/** Turns any value into plain JSON that a reader can make sense of. */

const MAX_DEPTH = 32;
const MAX_VALUES = 100_000;

/** The internal class name, which unlike `instanceof` also works across frames. */
export const tagOf = (value: unknown): string => Object.prototype.toString.call(value).slice(8, -1);

export const isObject = (value: unknown): value is Record<PropertyKey, any> => typeof value == "object" && value !== null;

/** What `get` gives; undefined when it throws, as a page's own getters and a sandbox may. */
export function attempt<T>(get: () => T): T | undefined {
  try {
    return get();
  } catch {}
}

/** The message of something thrown, whatever it is. Never throws. */
export const messageOf = (thrown: any): string =>
  attempt(() => String(isObject(thrown) ? thrown.message || thrown.name || tagOf(thrown) : thrown)) ?? "unreadable";

/**
 * A copy of `root` that JSON can hold. Maps, sets, dates, errors, nodes and the like
 * become readable; cycles, getters that throw, and what exceeds the bounds on depth
 * and number of values are marked in place.
 */
export function readable(root: unknown): unknown {
  let left = MAX_VALUES;
  // Only ancestors: an object met twice side by side is no cycle.
  const paths = new Map<object, string>();

  function read(source: any, key: PropertyKey, path: string): unknown {
    try {
      return convert(source[key], path);
    } catch (e) {
      return `[throws: ${messageOf(e)}]`;
    }
  }

  function convert(value: any, path: string): unknown {
    if (typeof value == "function") return `[function ${value.name}]`;
    if (/bigint|symbol/.test(typeof value) || (typeof value == "number" && !isFinite(value))) return String(value);
    if (!isObject(value)) return value;
    if (paths.has(value)) return `[circular: ${paths.get(value)}]`;
    if (paths.size > MAX_DEPTH) return "[too deep]";
    paths.set(value, path);
    try {
      return open(value, path);
    } finally {
      paths.delete(value);
    }
  }

  function open(value: any, path: string): unknown {
    // First, because another origin's window allows little more than this.
    if (value.window === value) return "[Window]";
    const tag = tagOf(value);
    if (tag == "Date") return isNaN(value) ? String(value) : value.toISOString();
    if (typeof value.toJSON == "function") {
      const json = value.toJSON();
      if (json !== value) return convert(json, path);
    }
    if (value.nodeType && value.nodeName) {
      // The start tag holds what tells an element from others.
      return `${value.nodeName}: ${value.outerHTML ?? value.textContent}`.slice(0, 200);
    }
    if (tag == "RegExp") return String(value);
    if (/^(Set|Map)$/.test(tag)) value = [...value];
    if (tag == "Map") {
      const record = Object.fromEntries(value);
      // As pairs only when an object would lose something.
      if (value.every(([key]: [unknown]) => typeof key == "string") && Object.keys(record).length == value.length) value = record;
    }
    const isList = Array.isArray(value) || (ArrayBuffer.isView(value) && (value as any).keys);
    // Not the keys of a list, which may be large: it is cut below.
    let keys = isList ? value.keys() : Object.keys(value);
    if (/^(Error|DOMException)$/.test(tag)) keys = ["name", "message", "cause", ...keys];
    else if (keys.length == 0 && !/^(Object|Map)$/.test(tag)) return `[${tag}]`;
    // No prototype, so that a key __proto__ is a key like any other.
    const out = isList ? [] : Object.create(null);
    for (const key of keys) {
      out[key] = left-- > 0 ? read(value, key, `${path}.${key}`) : "[too many]";
      if (left < 0) break;
    }
    return out;
  }

  return read([root], 0, "$");
}
