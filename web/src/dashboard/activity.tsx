/** Who called what: live, searchable, and down to each argument. */

import { signal, useSignal, type ReadonlySignal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import * as api from "./api.ts";
import { messageOf, now, store } from "./app.ts";
import { caller, CallState } from "./calls.tsx";
import { Result } from "./result.tsx";
import { href } from "./route.ts";
import { bytes, clientName, clock, cut, duration, matches, plural } from "./text.ts";
import { isObject } from "./toolfile.ts";
import { Tree } from "./tree.tsx";
import { Progress } from "./try.tsx";
import type { Call, CallDetails } from "./types.ts";
import { Act, Button, Empty, Long, memo, save, Tag, Text } from "./ui.tsx";

/** Rows that are in the document at once: more would make each change slow. */
const PAGE = 100;

const query = signal("");
const state = signal("");
const client = signal("");
const connection = signal("");
/** The list as it was when it was held. */
const held = signal<Call[] | undefined>(undefined);

const clientKey = (call: Call): string => (call.by == "dashboard" ? "dashboard" : clientName(call.client));

const isShown = (call: Call): boolean =>
  (!state.value || call.state == state.value) &&
  (!client.value || clientKey(call) === client.value) &&
  (!connection.value || call.connection === connection.value) &&
  (!query.value || matches(query.value, call.name, call.label, call.client.name, call.error ?? "", call.method));

export function Activity({ call: wanted }: { call: string }) {
  const limit = useSignal(PAGE);
  const list = useRef<HTMLTableElement>(null);
  const search = useRef<HTMLInputElement>(null);
  const live = usePaced(store.calls);
  // What is held keeps its order, but shows how its calls went on.
  const all = held.value?.map((call) => live.get(call.id) ?? call) ?? [...live.values()].reverse();
  const shown = all.filter(isShown);
  const rows = shown.slice(0, limit.value);
  const linked = wanted ? live.get(wanted) : undefined;
  if (linked && !rows.includes(linked)) rows.unshift(linked);
  const missed = held.value ? [...live.keys()].reverse().findIndex((id) => id === held.value![0]?.id) : 0;
  useKeys(list, search);
  return (
    <>
      <div class="head-line">
        <h1 tabIndex={-1}>Activity</h1>
        <div class="actions end">
          <Button icon={held.value ? "play" : "pause"} aria-pressed={!!held.value} onClick={() => (held.value = held.value ? undefined : all)}>
            {held.value ? `Go on${missed > 0 ? ` (${missed} new)` : missed < 0 ? " (many new)" : ""}` : "Hold"}
          </Button>
          <Act icon="down" run={async () => save("jsbridge-calls.jsonl", await api.getCallsFile())}>
            Download
          </Act>
        </div>
      </div>
      <Filters all={all} search={search} />
      {store.server.value?.redacted && <p class="soft">Arguments and results are not kept on this server.</p>}
      {rows.length > 0 && (
        <table class="calls" ref={list}>
          <caption class="visually-hidden">Calls, the newest first</caption>
          <colgroup>
            {["time", "what", "where", "who", "state", "took", "size"].map((name) => (
              <col key={name} class={"col-" + name} />
            ))}
          </colgroup>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col">What</th>
              <th scope="col">Where</th>
              <th scope="col">Who</th>
              <th scope="col">State</th>
              <th scope="col" class="num">
                Took
              </th>
              <th scope="col" class="num">
                Size
              </th>
            </tr>
          </thead>
          {rows.map((call) => (
            <CallRow key={call.id} call={call} start={call.id === wanted} />
          ))}
        </table>
      )}
      {shown.length > limit.value && (
        <button class="link" type="button" onClick={() => (limit.value += 2 * PAGE)}>
          {plural(shown.length - limit.value, "more call")}
        </button>
      )}
      {wanted && !linked && store.server.value && <p class="soft">The call of this link is not kept any more.</p>}
      {!all.length && store.server.value && (
        <Empty title="Nothing was called yet.">
          <p>
            Every call of an agent appears here while it runs: who, what, how long, and with what. Ask your agent to use a tool, or <a href={href("try")}>call one yourself</a>.
          </p>
        </Empty>
      )}
      {all.length > 0 && !rows.length && <Empty title="No call fits this filter." />}
      {store.counters.value.dropped > 0 && !held.value && <p class="soft">{plural(store.counters.value.dropped, "older call")} left the list.</p>}
      <p class="soft keys">
        <kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> opens, <kbd>/</kbd> filters, <kbd>h</kbd> holds
      </p>
    </>
  );
}

/** The value of a signal, but not so often that rendering it takes more than a fifth of the time. */
function usePaced<T>(source: ReadonlySignal<T>): T {
  const [value, setValue] = useState(source.peek());
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let frame = 0;
    let next = 0;
    const stop = source.subscribe(() => {
      timer ??= setTimeout(() => {
        timer = undefined;
        const began = performance.now();
        setValue(source.peek());
        // After the frame, its layout is in the account as well.
        frame = requestAnimationFrame(() => setTimeout(() => (next = performance.now() + 4 * (performance.now() - began))));
      }, next - performance.now());
    });
    return () => {
      stop();
      clearTimeout(timer);
      cancelAnimationFrame(frame);
    };
  }, []);
  return value;
}

function useKeys(list: { current: HTMLTableElement | null }, search: { current: HTMLInputElement | null }): void {
  useEffect(() => {
    function press(event: KeyboardEvent): void {
      const target = event.target as Element;
      if (event.ctrlKey || event.metaKey || event.altKey || target.closest("dialog")) return;
      if (target.matches("input, select, textarea, audio")) {
        if (event.key == "Escape") (target as HTMLElement).blur();
        return;
      }
      const buttons = [...(list.current?.querySelectorAll<HTMLElement>(".call-open") ?? [])];
      const at = buttons.indexOf(target.closest("tbody")?.querySelector<HTMLElement>(".call-open") as HTMLElement);
      const onRow = at >= 0 && target === buttons[at];
      const step = event.key == "j" || (event.key == "ArrowDown" && onRow) ? 1 : event.key == "k" || (event.key == "ArrowUp" && onRow) ? -1 : 0;
      if (step) buttons[Math.min(buttons.length - 1, Math.max(0, at + step))]?.focus();
      else if (event.key == "/") search.current?.focus();
      else if (event.key == "h") held.value = held.value ? undefined : [...store.calls.value.values()].reverse();
      else return;
      event.preventDefault();
    }
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

function Filters({ all, search }: { all: Call[]; search: { current: HTMLInputElement | null } }) {
  const clients = [...new Set(all.map(clientKey))].sort();
  const connections = new Map(all.map((call) => [call.connection, call.label]));
  const any = query.value || state.value || client.value || connection.value;
  return (
    <div class="filters" role="search">
      <input ref={search} type="search" aria-label="Filter calls" placeholder="Filter  ( / )" value={query.value} onInput={(event) => (query.value = event.currentTarget.value)} />
      <select aria-label="State" value={state.value} onChange={(event) => (state.value = event.currentTarget.value)}>
        <option value="">any state</option>
        {["running", "done", "failed", "cancelled"].map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
      <select aria-label="Who" value={client.value} onChange={(event) => (client.value = event.currentTarget.value)}>
        <option value="">anyone</option>
        {client.value && !clients.includes(client.value) && <option value={client.value}>{cut(client.value, 50)}</option>}
        {clients.map((one) => (
          <option key={one} value={one}>
            {one == "dashboard" ? "you, here" : cut(one, 50)}
          </option>
        ))}
      </select>
      <select aria-label="Connection" value={connection.value} onChange={(event) => (connection.value = event.currentTarget.value)}>
        <option value="">any connection</option>
        {connection.value && !connections.has(connection.value) && <option value={connection.value}>(no calls)</option>}
        {[...connections].slice(0, 200).map(([id, label]) => (
          <option key={id} value={id}>
            {cut(label, 50)}
          </option>
        ))}
      </select>
      {any && (
        <Button
          tone="quiet"
          icon="close"
          onClick={() => {
            query.value = state.value = client.value = connection.value = "";
          }}
        >
          Clear
        </Button>
      )}
    </div>
  );
}

const CallRow = memo(({ call, start }: { call: Call; start: boolean }) => {
  const open = useSignal(start);
  const row = useRef<HTMLTableSectionElement>(null);
  const id = "call-" + useState(() => ++rowIds)[0];
  useEffect(() => {
    if (!start) return;
    open.value = true;
    row.current?.scrollIntoView({ block: "nearest" });
  }, [start]);
  return (
    <tbody ref={row} class={open.value ? "open" : ""}>
      <tr onClick={(event) => (event.target as Element).closest("button") || getSelection()?.toString() || (open.value = !open.value)}>
        <td class="mono soft">
          <time dateTime={call.at}>{clock(call.at)}</time>
        </td>
        <td class="what">
          <button class="call-open" type="button" aria-expanded={open.value} aria-controls={open.value ? id : undefined} onClick={() => (open.value = !open.value)}>
            <Text class="mono strong" value={call.name} max={60} />
          </button>
          {call.method != "tool" && <Tag>{call.method}</Tag>}
        </td>
        <td>
          <Text value={call.label} max={40} />
        </td>
        <td>
          <Text value={caller(call)} max={30} />
        </td>
        <td>
          <CallState state={call.state} />
        </td>
        <td class="num mono">{call.ms !== undefined ? duration(call.ms) : call.state == "running" ? <Since at={call.at} /> : ""}</td>
        <td class="num mono soft" title="Arguments and result">
          {bytes(call.argBytes + (call.resultBytes ?? 0))}
        </td>
      </tr>
      {(call.error || call.progress || call.state == "running") && !open.value && (
        <tr class="under" onClick={() => (open.value = true)}>
          <td />
          <td colSpan={6}>
            {call.state == "running" ? (
              <span class="under-running">
                {call.progress && <Progress progress={call.progress} />}
                <CancelButton call={call} />
              </span>
            ) : (
              call.error && <Text class="bad" value={call.error} max={160} />
            )}
          </td>
        </tr>
      )}
      {open.value && (
        <tr class="inside">
          <td colSpan={7} id={id}>
            <Inside call={call} />
          </td>
        </tr>
      )}
    </tbody>
  );
});

let rowIds = 0;

function Since({ at }: { at: string }) {
  return <span class="soft">{duration(Math.max(0, Math.floor((now.value - Date.parse(at)) / 1000) * 1000))}</span>;
}

function CancelButton({ call }: { call: Call }) {
  return (
    <span onClick={(event) => event.stopPropagation()}>
      <Act icon="stop" run={() => api.cancelCall(call.id)} aria-label={`Cancel ${call.name}`}>
        Cancel
      </Act>
    </span>
  );
}

function Inside({ call }: { call: Call }) {
  const [details, setDetails] = useState<CallDetails | undefined>();
  const [error, setError] = useState("");
  useEffect(() => {
    let stale = false;
    api.getCall(call.id).then(
      (got) => stale || (setDetails(got), setError("")),
      (failure) => stale || setError(messageOf(failure)),
    );
    return () => void (stale = true);
  }, [call.id, call.state]);
  const present = store.connections.value.has(call.connection);
  return (
    <div class="call-inside">
      <p class="call-links">
        <span class="soft">{call.by == "dashboard" ? caller(call) : clientName(call.client)}</span>
        {present ? <a href={href("connection", call.connection)}>Connection</a> : <span class="soft">The connection is gone.</span>}
        <span class="soft">
          {bytes(call.argBytes)} in{call.resultBytes !== undefined && `, ${bytes(call.resultBytes)} out`}
        </span>
        {call.state == "running" && <CancelButton call={call} />}
      </p>
      {call.progress && call.state == "running" && <Progress progress={call.progress} />}
      {error && <p class="bad">{error}</p>}
      {!details && !error && <p class="soft">Reading…</p>}
      {details?.omitted && <p class="soft">{details.omitted == "size" ? "Arguments and result are too large to be kept." : "Arguments and result are not kept on this server."}</p>}
      {details && "arguments" in details && <Tree name="Arguments" value={details.arguments} open />}
      {call.error && <Long value={call.error} />}
      {details && "result" in details && (
        <div class="call-result">
          <h2>Result</h2>
          {call.method == "tool" && isObject(details.result) && ("content" in details.result || "structuredContent" in details.result) ? <Result result={details.result} /> : <Tree value={details.result} open />}
        </div>
      )}
    </div>
  );
}

