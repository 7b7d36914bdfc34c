/** Connect strings: what names the place where a page joins. The server has the same rule. */

/** A connect string, taken apart. Its parts are mended: what they hold is `[A-Za-z0-9_-]{1,64}`. */
export type Connect =
  /** The tenant of one MCP session: a UUID in lower case. Whoever holds it may join. */
  | { kind: "session"; session: string }
  /** A root connection: every session sees it. */
  | { kind: "root"; name: string }
  /** A channel. Without a name the page's own label is used. */
  | { kind: "channel"; channel: string; name?: string }
  /** Nothing is left of it: the server refuses it. */
  | { kind: "none" };

const MAX_PART = 64;

/**
 * Reads a connect string: a UUID, `name`, `channel:name` or `channel:`. Each run of
 * other characters than `[A-Za-z0-9_-]` becomes one `-`, or nothing at the ends of a
 * part, and longer parts are cut.
 */
export function parseConnect(text: string): Connect {
  const colon = text.indexOf(":");
  const name = mend(text.slice(colon + 1));
  if (colon >= 0) {
    const channel = mend(text.slice(0, colon));
    if (!channel) return { kind: "none" };
    return name ? { kind: "channel", channel, name } : { kind: "channel", channel };
  }
  if (!name) return { kind: "none" };
  // After the mending, so that a UUID pasted with its quotes does not become a name that everybody sees.
  if (/^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(name)) return { kind: "session", session: name.toLowerCase() };
  return { kind: "root", name };
}

/** The connect string in its mended form; `""` for one that names nothing. */
export function formatConnect(connect: Connect): string {
  switch (connect.kind) {
    case "session":
      return connect.session;
    case "root":
      return connect.name;
    case "channel":
      return `${connect.channel}:${connect.name ?? ""}`;
    case "none":
      return "";
  }
}

// By way of spaces, so that only dashes of replaced runs go at the ends.
const mend = (part: string) =>
  part
    .replace(/[^\w-]+/g, " ")
    .trim()
    .replaceAll(" ", "-")
    .slice(0, MAX_PART);
