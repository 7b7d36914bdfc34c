/** The tools of a connection: folded, each with its schema, its example and its code. */

import { useSignal } from "@preact/signals";
import { AddTool } from "./add.tsx";
import * as api from "./api.ts";
import { ask } from "./ask.tsx";
import { typeWords } from "./form.tsx";
import { href } from "./route.ts";
import { toField } from "./schema.ts";
import { cut, duration, matches } from "./text.ts";
import { fileName, isObject, toFile } from "./toolfile.ts";
import { ExportTools, ImportTools } from "./transfer.tsx";
import { Tree } from "./tree.tsx";
import type { Details, Tool } from "./types.ts";
import { Act, Button, Copy, Empty, Long, save, Tag, Text } from "./ui.tsx";

const FILTER_FROM = 8;

export function Tools({ details }: { details: Details }) {
  const query = useSignal("");
  const dialog = useSignal<"" | "add" | "export" | "import">("");
  const { tools } = details;
  const shown = tools.filter((tool) => matches(query.value, tool.name, tool.pageName, tool.title, tool.description));
  const saved = tools.filter((tool) => tool.origin);
  const live = details.state != "pending";
  const close = () => (dialog.value = "");
  return (
    <section class="card" aria-labelledby="tools">
      <header class="card-head">
        <h2 id="tools">Tools</h2>
        <span class="soft">{tools.length}</span>
        {tools.length >= FILTER_FROM && <input type="search" aria-label="Filter tools" placeholder="Filter" value={query.value} onInput={(event) => (query.value = event.currentTarget.value)} />}
        <div class="actions end">
          <Button icon="add" tone="primary" disabled={!live} onClick={() => (dialog.value = "add")}>
            Add
          </Button>
          <Button icon="up" disabled={!live} onClick={() => (dialog.value = "import")}>
            Import
          </Button>
          {saved.length > 0 && (
            <Button icon="down" onClick={() => (dialog.value = "export")}>
              Export
            </Button>
          )}
        </div>
      </header>
      {shown.length > 0 && (
        <ul class="rows">
          {shown.map((tool) => (
            <Item key={tool.pageName} details={details} tool={tool} />
          ))}
        </ul>
      )}
      {!tools.length && (
        <Empty title="The page declares no tools.">
          <p>
            It does by <code>window.__mcpTools</code> or the tool bus. You can also add one here: by the path of a function of the page, or by code.
          </p>
        </Empty>
      )}
      {tools.length > 0 && !shown.length && <Empty title="No tool has these words." />}
      {dialog.value == "add" && <AddTool connection={details} onClose={close} />}
      {dialog.value == "export" && <ExportTools tools={saved} onClose={close} />}
      {dialog.value == "import" && <ImportTools connection={details} onClose={close} />}
    </section>
  );
}

function Item({ details, tool }: { details: Details; tool: Tool }) {
  const open = useSignal(false);
  const { annotations } = tool;
  return (
    <li>
      <details class="tool" onToggle={(event) => (open.value = event.currentTarget.open)}>
        <summary>
          <span class="row-main">
            <span class="row-title">
              <Text class="strong mono" value={tool.pageName} max={70} />
              {tool.title && tool.title !== tool.pageName && <Text value={tool.title} max={60} />}
              {tool.source == "host" ? <Tag title="Declared by the page itself">host</Tag> : <Tag tone="accent" title="Added while the page runs">dynamic{tool.origin && `, by ${tool.origin.kind}`}</Tag>}
              {annotations?.readOnlyHint === true && <Tag title="The page says that it changes nothing">only reads</Tag>}
              {annotations?.destructiveHint === true && annotations.readOnlyHint !== true && <Tag tone="warn" title="The page says that it may destroy something">may destroy</Tag>}
            </span>
            {!open.value && <Text class="soft row-sub" value={tool.description.split("\n", 1)[0]!} max={140} />}
          </span>
        </summary>
        {open.value && <Inside details={details} tool={tool} />}
      </details>
      <a class="button try" href={href("try", details.id, tool.pageName)}>
        Try it
      </a>
    </li>
  );
}

function Inside({ details, tool }: { details: Details; tool: Tool }) {
  const field = toField(tool.inputSchema);
  const file = toFile(tool);
  async function remove(): Promise<void> {
    const kept = file ? " Save it first if you want it back." : "";
    if (await ask({ title: "Remove this tool?", text: `Agents can no longer call ${cut(tool.pageName, 80)}.${kept}`, action: "Remove", danger: true })) await api.removeTool(details.id, tool.pageName);
  }
  return (
    <div class="tool-inside">
      {tool.description && <Long value={tool.description} max={1000} />}
      <p class="published">
        Published as <code><Text value={tool.name} max={100} /></code> <Copy text={tool.name} what="the name" />
        {tool.timeoutMs !== undefined && <span class="soft">at most {duration(tool.timeoutMs)}</span>}
      </p>
      {field.kind == "object" && field.props.length > 0 && (
        <ul class="params" aria-label="Parameters">
          {field.props.map(({ name, required, field: param }) => (
            <li key={name}>
              <Text class="mono strong" value={name} max={60} />
              <span class="soft">
                {typeWords(param)}
                {!required && ", optional"}
              </span>
              <Text value={param.description} max={300} />
            </li>
          ))}
        </ul>
      )}
      {field.kind == "object" && !field.props.length && <p class="soft">No parameters.</p>}
      <div class="folds">
        <Tree name="Schema" value={tool.inputSchema} />
        {tool.outputSchema !== undefined && <Tree name="Schema of the result" value={tool.outputSchema} />}
        {tool.example !== undefined && <Tree name="Example" value={tool.example} open />}
        {isObject(annotationsOf(tool)) && <Tree name="Annotations" value={tool.annotations} />}
      </div>
      {tool.origin && (
        <figure class="embedded">
          <figcaption>{tool.origin.kind == "code" ? "Its code, which runs in the page" : "The function of the page that it calls"}</figcaption>
          <Long value={tool.origin.kind == "code" ? tool.origin.code : tool.origin.path} max={3000} mono />
        </figure>
      )}
      {tool.source == "dynamic" && (
        <div class="actions">
          {file !== undefined && (
            <Button icon="down" onClick={() => save(fileName(tool), file)}>
              Save
            </Button>
          )}
          {file === undefined && <span class="soft">Of the page's tool bus: it comes and goes with the page's own code.</span>}
          {tool.origin && (
            <Act icon="trash" tone="danger" run={remove}>
              Remove
            </Act>
          )}
        </div>
      )}
    </div>
  );
}

const annotationsOf = (tool: Tool): unknown => (tool.annotations && Object.keys(tool.annotations).length ? tool.annotations : undefined);
