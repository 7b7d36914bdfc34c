/** JSON, folded. Only what is open is in the document. */

import { useSignal } from "@preact/signals";
import { isObject } from "./toolfile.ts";
import { cut, plural } from "./text.ts";
import { Long } from "./ui.tsx";

/** Members shown at once. */
const PAGE = 100;

export function Tree({ value, name, open = false }: { value: unknown; name?: string; open?: boolean }) {
  const isOpen = useSignal(open);
  const shown = useSignal(PAGE);
  const label = name !== undefined && <bdi class="tree-name">{cut(name, 100)}</bdi>;
  if (!Array.isArray(value) && !isObject(value)) {
    return (
      <div class="tree-leaf">
        {label} <Leaf value={value} />
      </div>
    );
  }
  const entries = Object.entries(value);
  if (!entries.length) return <div class="tree-leaf">{label} <span class="soft">{Array.isArray(value) ? "[ ]" : "{ }"}</span></div>;
  return (
    <details class="tree" open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>
        {label} <span class="soft">{Array.isArray(value) ? plural(entries.length, "item") : cut(`{ ${entries.slice(0, 8).map(([key]) => key).join(", ")} }`, 60)}</span>
      </summary>
      {isOpen.value && (
        <div class="tree-inner">
          {entries.slice(0, shown.value).map(([key, one]) => (
            <Tree key={key} name={key} value={one} />
          ))}
          {entries.length > shown.value && (
            <button class="link" type="button" onClick={() => (shown.value += PAGE)}>
              {plural(entries.length - shown.value, "more item")}
            </button>
          )}
        </div>
      )}
    </details>
  );
}

function Leaf({ value }: { value: unknown }) {
  if (typeof value != "string") return <code class="tree-value other">{String(value)}</code>;
  if (value.length > 200 || value.includes("\n")) return <Long value={value} max={200} mono />;
  return <bdi class="tree-value text">"{value}"</bdi>;
}
