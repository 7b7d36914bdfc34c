/** Connections in lists. */

import { href } from "./route.ts";
import { cut, plural } from "./text.ts";
import type { Connection } from "./types.ts";
import { Age, memo, StateTag, Tag, Text } from "./ui.tsx";

export const byLabel = (a: Connection, b: Connection): number => a.label.localeCompare(b.label) || (a.prefix < b.prefix ? -1 : 1);

/** In one line, for lists that hold only text. */
export const connectionName = (one: Connection): string => cut(one.label || "(no name)", 60) + (one.prefix ? ` (${cut(one.prefix, 30)})` : "");

/** Where agents meet it. */
export function placeOf(one: Connection): string {
  switch (one.kind) {
    case "root":
      return "seen by every session";
    case "channel":
      return `channel ${one.channel ?? ""}`;
    case "workspace":
      return `workspace ${one.workspace ?? ""}`;
  }
  return "one session's own";
}

export const Row = memo(({ connection: one }: { connection: Connection }) => (
  <li class="row connection">
    <a class="row-main" href={href("connection", one.id)}>
      <span class="row-title">
        <Text class="strong" value={one.label || "(no name)"} max={60} />
        {one.prefix && (
          <span class="mono soft">
            <Text value={one.prefix} max={30} />
            {!one.bare && "__"}
          </span>
        )}
      </span>
      <span class="row-sub">
        <Text value={one.title || one.url} max={70} />
        <Text class="soft" value={one.origin} max={60} />
      </span>
    </a>
    <span class="row-facts">
      {one.problems > 0 && <Tag tone="warn">{plural(one.problems, "problem")}</Tag>}
      {!one.current && one.state != "pending" && <Tag title="Its script is of an older version: reload the page.">old script</Tag>}
      <StateTag state={one.state} />
      <Age since={one.since} />
      <span class="counts">
        <Count n={one.tools} one="tool" />
        <Count n={one.prompts} one="prompt" hidden />
        <Count n={one.resources} one="resource" hidden />
      </span>
    </span>
  </li>
));

function Count({ n, one, hidden = false }: { n: number; one: string; hidden?: boolean }) {
  return n || !hidden ? <span>{plural(n, one)}</span> : null;
}
