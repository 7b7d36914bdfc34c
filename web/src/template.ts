/** URI templates (RFC 6570), read backwards: which variables give a URI. */

/** What begins an expression's expansion, what is between its values, and what one of them may hold. */
const OPERATORS: Record<string, [first: string, between: string, value: string]> = {
  "": ["", ",", "[^/?#,]*"],
  "+": ["", ",", "[^?#]*"],
  "#": ["#", ",", ".*"],
  ".": [".", ".", "[^/?#.]*"],
  "/": ["/", "/", "[^/?#]*"],
  ";": [";", ";", "[^/?#;]*"],
  "?": ["?", "&", "[^#&]*"],
  "&": ["&", "&", "[^#&]*"],
};

/**
 * The variables by which a template, relative or not, becomes a URI; undefined when none do. Values of
 * lists stay joined by commas.
 */
export function matchTemplate(template: string, uri: string): Record<string, string> | undefined {
  const names: string[] = [];
  // Odd parts are expressions.
  const parts = bare(template).split(/\{([^}]*)\}/);
  const pattern = parts.map((part, i) => (i % 2 ? expression(part, names) : escape(part))).join("");
  const found = RegExp(`^${pattern}$`, "s").exec(bare(uri));
  if (!found) return;
  const variables: Record<string, string> = Object.create(null);
  names.forEach((name, i) => {
    const value = found[i + 1];
    if (value !== undefined) variables[name] = decode(value);
  });
  return { ...variables };
}

function expression(text: string, names: string[]): string {
  const [, operator = "", list = ""] = /^([+#./;?&]?)(.*)$/s.exec(text)!;
  const [first, between, value] = OPERATORS[operator]!;
  const named = /[;?&]/.test(operator);
  return list
    .split(",")
    .map((spec, i) => {
      const name = spec.replace(/\*$|:\d+$/, "");
      names.push(name);
      // A variable without a value leaves no trace.
      return `(?:${escape(i ? between : first)}${named ? escape(name) + "=?" : ""}(${value}))?`;
    })
    .join("");
}

/** Slashes at the front mean nothing: the page's URIs all hang below its prefix. */
const bare = (text: string) => text.replace(/^\/+/, "");

const escape = (text: string) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
