/** Dynamic tools to files and back. */

import { useSignal } from "@preact/signals";
import * as api from "./api.ts";
import { announce, messageOf } from "./app.ts";
import { plural } from "./text.ts";
import { fileName, fromFile, toFile, toRequest } from "./toolfile.ts";
import type { Details, Tool } from "./types.ts";
import { Button, Dialog, Icon, save, Tag, Text } from "./ui.tsx";

export function ExportTools({ tools, onClose }: { tools: Tool[]; onClose: () => void }) {
  const chosen = useSignal<ReadonlySet<string>>(new Set(tools.map((tool) => tool.pageName)));
  const picked = tools.filter((tool) => chosen.value.has(tool.pageName));
  return (
    <Dialog title="Export tools" onClose={onClose}>
      <p>Each tool becomes one file, which can be imported into any page later.</p>
      <ul class="rows">
        {tools.map((tool) => (
          <li class="row" key={tool.pageName}>
            <label class="check">
              <input
                type="checkbox"
                checked={chosen.value.has(tool.pageName)}
                onChange={(event) => {
                  const next = new Set(chosen.value);
                  if (event.currentTarget.checked) next.add(tool.pageName);
                  else next.delete(tool.pageName);
                  chosen.value = next;
                }}
              />
              <Text class="mono" value={tool.pageName} max={80} />
            </label>
            {tool.origin && <Tag>by {tool.origin.kind}</Tag>}
          </li>
        ))}
      </ul>
      <div class="actions end">
        <Button onClick={onClose}>Cancel</Button>
        <Button
          icon="down"
          tone="primary"
          disabled={!picked.length}
          onClick={() => {
            for (const tool of picked) save(fileName(tool), toFile(tool)!);
            onClose();
          }}
        >
          Export {plural(picked.length, "file")}
        </Button>
      </div>
    </Dialog>
  );
}

interface Imported {
  file: string;
  /** The published name. */
  added?: string;
  error?: string;
}

const MAX_FILE = 1 << 20;

async function importFile(id: string, file: File): Promise<Imported> {
  try {
    if (file.size > MAX_FILE) throw Error("This file is too large for a tool.");
    const { published } = await api.addTool(id, toRequest(fromFile(await file.text())));
    return { file: file.name, added: published };
  } catch (error) {
    return { file: file.name, error: messageOf(error) };
  }
}

export function ImportTools({ connection, onClose }: { connection: Details; onClose: () => void }) {
  const outcomes = useSignal<Imported[]>([]);
  const busy = useSignal(false);
  async function take(files: File[]): Promise<void> {
    busy.value = true;
    outcomes.value = [];
    // One by one: they appear in the order of the files, and the page is asked one thing at a time.
    for (const file of files) outcomes.value = [...outcomes.value, await importFile(connection.id, file)];
    busy.value = false;
    const failed = outcomes.value.filter((one) => one.error).length;
    announce(`${outcomes.value.length - failed} imported, ${failed} failed.`);
  }
  return (
    <Dialog title="Import tools" onClose={onClose}>
      <p>
        Their code will run in the page, with all of its rights. Import only files that you trust.
      </p>
      <label class="drop">
        <Icon name="up" /> Choose <code>.tool.json</code> files
        <input
          type="file"
          accept=".json,application/json"
          multiple
          disabled={busy.value}
          onChange={(event) => {
            const files = [...(event.currentTarget.files ?? [])];
            event.currentTarget.value = ""; // So that the same file can be chosen again.
            if (files.length) void take(files);
          }}
        />
      </label>
      {outcomes.value.length > 0 && (
        <ul class="rows">
          {outcomes.value.map((one, i) => (
            <li class="row" key={i}>
              <span class="row-main">
                <span class="row-title">
                  <Tag tone={one.error ? "bad" : "good"}>{one.error ? "failed" : "imported"}</Tag>
                  <Text class="mono" value={one.file} max={60} />
                </span>
                {one.error ? <Text class="bad" value={one.error} max={400} /> : <Text class="soft" value={"as " + one.added} />}
              </span>
            </li>
          ))}
        </ul>
      )}
      <div class="actions end">
        <Button tone={outcomes.value.length ? "primary" : "quiet"} onClick={onClose}>
          {outcomes.value.length ? "Done" : "Cancel"}
        </Button>
      </div>
    </Dialog>
  );
}
