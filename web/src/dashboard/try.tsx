/** Calls any tool: a form from its schema, and what comes back. */

import { useSignal, type Signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import * as api from "./api.ts";
import { announce, attempt, messageOf, now, store } from "./app.ts";
import { useDetails } from "./details.ts";
import { Form } from "./form.tsx";
import { Result } from "./result.tsx";
import { href } from "./route.ts";
import { createNode, fill, read, toField, type Fault, type Node } from "./schema.ts";
import { byLabel, connectionName } from "./connections.tsx";
import { cut, duration } from "./text.ts";
import type { Call, CallAnswer, Details, Tool } from "./types.ts";
import { Button, Empty, Icon, Long, StateTag, Tag, Text } from "./ui.tsx";

/** What was entered, by connection and tool, for as long as this page lives. */
const drafts = new Map<string, { schema: string; node: Node; json: string | undefined }>();
const MAX_DRAFTS = 50;

export function TryView({ id, tool: wanted }: { id: string; tool: string }) {
  const connections = [...store.connections.value.values()].filter((one) => one.state != "pending").sort(byLabel);
  const chosen = store.connections.value.get(id) ?? (id ? undefined : connections[0]);
  const { details, error } = useDetails(chosen);
  const tools = details?.tools ?? [];
  const tool = tools.find((one) => one.pageName === wanted) ?? (wanted ? undefined : tools[0]);
  return (
    <>
      <h1 tabIndex={-1}>Try it</h1>
      {!connections.length && !id ? (
        <Empty title="No page is connected, so there is nothing to call.">
          <p>
            <a href={href("connect")}>Connect a page</a> first; its tools can be called here by hand, the way an agent would.
          </p>
        </Empty>
      ) : (
        <>
          <div class="pickers">
            <label>
              <span>Connection</span>
              <select value={chosen?.id ?? ""} onChange={(event) => (location.hash = href("try", event.currentTarget.value))}>
                {!chosen && <option value="">(gone)</option>}
                {connections.map((one) => (
                  <option key={one.id} value={one.id}>
                    {connectionName(one)}
                  </option>
                ))}
              </select>
            </label>
            <label>
              <span>Tool</span>
              <select value={tool?.pageName ?? ""} disabled={!tools.length} onChange={(event) => chosen && (location.hash = href("try", chosen.id, event.currentTarget.value))}>
                {!tool && <option value="">{tools.length ? "(gone)" : "none"}</option>}
                {tools.map((one) => (
                  <option key={one.pageName} value={one.pageName}>
                    {cut(one.pageName, 80)}
                  </option>
                ))}
              </select>
            </label>
            {chosen && <StateTag state={chosen.state} />}
          </div>
          {!chosen && <Empty title="This connection is gone. Its tab was closed, or left." />}
          {error && <p class="bad">{error}</p>}
          {chosen && details && !tools.length && (
            <Empty title="This page has no tools yet.">
              <p>
                Declare some in <code>window.__mcpTools</code>, or <a href={href("connection", chosen.id)}>add one</a> by path or by code.
              </p>
            </Empty>
          )}
          {chosen && details && wanted && tools.length > 0 && !tool && <Empty title={`The page has no tool “${cut(wanted, 80)}” any more.`} />}
          {chosen && details && tool && <Trial key={chosen.id + "\n" + tool.pageName} details={details} tool={tool} />}
        </>
      )}
    </>
  );
}

function draftOf(details: Details, tool: Tool) {
  const key = details.id + "\n" + tool.pageName;
  const schema = JSON.stringify(tool.inputSchema);
  let draft = drafts.get(key);
  if (!draft || draft.schema !== schema) {
    draft = { schema, node: createNode(toField(tool.inputSchema), true), json: undefined };
    // At the top, what JSON begins with is an object.
    if (draft.node.raw.peek()) draft.node.text.value = "{}";
  }
  drafts.delete(key);
  drafts.set(key, draft);
  if (drafts.size > MAX_DRAFTS) drafts.delete(drafts.keys().next().value!);
  return draft;
}

interface Run {
  abort: AbortController;
  began: number;
  /** Calls that were there before: the one that appears is this one. */
  before: ReadonlySet<string>;
}

type Outcome = { answer: CallAnswer } | { failure: string; cancelled: boolean; ms: number };

function Trial({ details, tool }: { details: Details; tool: Tool }) {
  const draft = draftOf(details, tool);
  const json = useSignal(draft.json);
  const faults = useSignal<Fault[]>([]);
  const jsonFault = useSignal("");
  const run = useSignal<Run | undefined>(undefined);
  const outcome = useSignal<Outcome | undefined>(undefined);
  const form = useRef<HTMLFormElement>(null);
  draft.json = json.value;
  useEffect(() => () => run.peek()?.abort.abort(), []);

  function collect(): { value: unknown } | undefined {
    if (json.value !== undefined) {
      try {
        const value = JSON.parse(json.value);
        jsonFault.value = "";
        return { value };
      } catch (error) {
        jsonFault.value = messageOf(error);
        return undefined;
      }
    }
    const found: Fault[] = [];
    const value = read(draft.node, found);
    faults.value = found;
    return found.length ? undefined : { value };
  }

  /** Switches between the fields and JSON, with what was entered. */
  function toggle(): void {
    if (json.value === undefined) {
      json.value = JSON.stringify(read(draft.node, []) ?? {}, null, 2);
      return;
    }
    const collected = collect();
    if (!collected) return;
    fill(draft.node, collected.value);
    json.value = undefined;
    faults.value = [];
  }

  async function start(): Promise<void> {
    if (run.value) return;
    const collected = collect();
    if (!collected) {
      requestAnimationFrame(() => form.current?.querySelector<HTMLElement>("[aria-invalid]")?.focus());
      return announce("Some arguments are not right yet.");
    }
    const abort = new AbortController();
    const began = Date.now();
    run.value = { abort, began, before: new Set(store.calls.peek().keys()) };
    outcome.value = undefined;
    try {
      const answer = await api.callTool(details.id, tool.pageName, collected.value, abort.signal);
      outcome.value = { answer };
      announce(answer.result.isError ? "The call failed." : `The call is done, in ${duration(answer.ms)}.`);
    } catch (error) {
      outcome.value = { failure: abort.signal.aborted ? "Cancelled." : messageOf(error), cancelled: abort.signal.aborted, ms: Date.now() - began };
      announce("The call failed.");
    }
    run.value = undefined;
  }

  const { annotations } = tool;
  return (
    <div class="trial">
      <section class="card" aria-label="Arguments">
        <header class="card-head">
          <h2>
            <Text value={tool.title || tool.pageName} max={80} />
          </h2>
          <Tag>{tool.source == "host" ? "from the page" : "added"}</Tag>
          {annotations?.destructiveHint === true && annotations.readOnlyHint !== true && <Tag tone="warn">may destroy</Tag>}
          {annotations?.readOnlyHint === true && <Tag>only reads</Tag>}
        </header>
        {tool.description && <Long value={tool.description} max={300} />}
        <form
          ref={form}
          noValidate
          onSubmit={(event) => {
            event.preventDefault();
            void start();
          }}
          onKeyDown={(event) => {
            if (event.key != "Enter" || !(event.ctrlKey || event.metaKey)) return;
            event.preventDefault();
            void start();
          }}
        >
          {json.value === undefined ? <Form node={draft.node} faults={faults.value} /> : <JsonField json={json as Signal<string>} fault={jsonFault.value} />}
          <div class="actions">
            <Button icon="play" tone="primary" type="submit" aria-disabled={!!run.value} title="Ctrl+Enter">
              Call
            </Button>
            {tool.example !== undefined && (
              <Button
                onClick={() => {
                  if (json.value === undefined) fill(draft.node, tool.example);
                  else json.value = JSON.stringify(tool.example, null, 2);
                  faults.value = [];
                }}
              >
                Fill in the example
              </Button>
            )}
            <Button tone="quiet" aria-pressed={json.value !== undefined} onClick={toggle}>
              {json.value === undefined ? "Edit as JSON" : "Edit as form"}
            </Button>
          </div>
        </form>
      </section>
      <section class="card" aria-label="Result">
        {run.value ? <Running run={run.value} details={details} tool={tool} /> : outcome.value ? <Ended outcome={outcome.value} /> : <Empty title="The result appears here." />}
      </section>
    </div>
  );
}

function JsonField({ json, fault }: { json: Signal<string>; fault: string }) {
  return (
    <div class={`field ${fault ? "faulty" : ""}`}>
      <label class="field-label" for="raw-arguments">
        <span class="field-name">Arguments</span> <span class="field-type">JSON</span>
      </label>
      <textarea id="raw-arguments" class="mono" rows={8} spellcheck={false} aria-invalid={fault ? true : undefined} aria-describedby={fault ? "raw-fault" : undefined} value={json.value} onInput={(event) => (json.value = event.currentTarget.value)} />
      {fault && (
        <p class="field-fault" id="raw-fault">
          <Icon name="alert" /> {fault}
        </p>
      )}
    </div>
  );
}

function Running({ run, details, tool }: { run: Run; details: Details; tool: Tool }) {
  const mine = [...store.calls.value.values()].reverse().find((call) => call.by == "dashboard" && call.connection === details.id && call.name === tool.name && call.state == "running" && !run.before.has(call.id));
  return (
    <div class="running">
      <p class="running-head">
        <span class="spinner" aria-hidden="true" /> Running for {Math.max(0, Math.round((now.value - run.began) / 1000))} s
        <Button
          icon="stop"
          onClick={async () => {
            // The answer then says that it was cancelled. Without an id, going away does the same.
            if (!mine || !(await attempt(() => api.cancelCall(mine.id)))) run.abort.abort();
          }}
        >
          Cancel
        </Button>
      </p>
      {mine?.progress && <Progress progress={mine.progress} />}
    </div>
  );
}

export function Progress({ progress }: { progress: NonNullable<Call["progress"]> }) {
  const { progress: done, total, message } = progress;
  return (
    <div class="progress">
      <progress aria-label="Progress" {...(total ? { value: Math.min(done, total), max: total } : {})} />
      <span class="soft">
        {total ? `${done} of ${total}` : done}
        {message && ": "}
        {message && <Text value={message} />}
      </span>
    </div>
  );
}

function Ended({ outcome }: { outcome: Outcome }) {
  if ("failure" in outcome) {
    return (
      <>
        <header class="card-head">
          <Tag tone={outcome.cancelled ? "plain" : "bad"}>{outcome.cancelled ? "cancelled" : "not called"}</Tag>
          <span class="soft">{duration(outcome.ms)}</span>
        </header>
        <Long value={outcome.failure} />
      </>
    );
  }
  const { answer } = outcome;
  return (
    <>
      <header class="card-head">
        <Tag tone={answer.result.isError ? "bad" : "good"}>{answer.result.isError ? "failed" : "done"}</Tag>
        <span class="soft">{duration(answer.ms)}</span>
        <a class="end" href={href("activity", answer.call)}>
          In the activity
        </a>
      </header>
      <Result result={answer.result} />
    </>
  );
}
