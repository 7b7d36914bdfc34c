/** Adds a tool to a page: by the path of one of its functions, or by code. */

import { useSignal } from "@preact/signals";
import { useId, useRef } from "preact/hooks";
import * as api from "./api.ts";
import { flash, messageOf, store } from "./app.ts";
import { isObject } from "./toolfile.ts";
import type { Details } from "./types.ts";
import { Button, Dialog, Icon } from "./ui.tsx";

const TYPES = ["string", "number", "integer", "boolean", "array", "object"];

interface Param {
  key: number;
  name: string;
  type: string;
  description: string;
  optional: boolean;
}

let keys = 0;

export function AddTool({ connection, onClose }: { connection: Details; onClose: () => void }) {
  const code = store.server.value?.pageCode ?? "allow";
  const kind = useSignal<"code" | "path">(code == "off" ? "path" : "code");
  const name = useSignal("");
  const description = useSignal("");
  const body = useSignal("");
  const path = useSignal("");
  const params = useSignal<Param[]>([]);
  const json = useSignal<string | undefined>(undefined);
  const error = useSignal("");
  const busy = useSignal(false);
  const id = useId();

  async function submit(): Promise<void> {
    if (busy.value) return;
    error.value = "";
    busy.value = true;
    try {
      const tool = {
        name: name.value.trim(),
        description: description.value.trim(),
        ...paramsOf(json.value === undefined ? params.value : json.value),
        ...(kind.value == "code" ? { code: body.value } : { path: path.value.trim() }),
      };
      const { published } = await api.addTool(connection.id, tool);
      flash(`Added ${published}.`);
      onClose();
    } catch (failure) {
      error.value = messageOf(failure);
    }
    busy.value = false;
  }

  return (
    <Dialog title="Add a tool" wide onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <fieldset class="segments">
          <legend class="visually-hidden">What it is made of</legend>
          <Segment name={id} checked={kind.value == "code"} disabled={code == "off"} onChoose={() => (kind.value = "code")}>
            By code
          </Segment>
          <Segment name={id} checked={kind.value == "path"} onChoose={() => (kind.value = "path")}>
            By path
          </Segment>
        </fieldset>
        {code == "off" && <p class="soft">Code is switched off on this server (--page-code=off).</p>}
        {code == "ask" && kind.value == "code" && <p class="soft">The page asks whoever sits there before it takes the code in (--page-code=ask).</p>}
        <div class="field">
          <label class="field-label" for={id + "n"}>
            <span class="field-name">Name</span>
          </label>
          <input id={id + "n"} class="mono" required data-first autocomplete="off" spellcheck={false} value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />
        </div>
        <div class="field">
          <label class="field-label" for={id + "d"}>
            <span class="field-name">Description</span>
            <span class="field-type">what it does and returns, for the agent</span>
          </label>
          <textarea id={id + "d"} rows={2} required value={description.value} onInput={(event) => (description.value = event.currentTarget.value)} />
        </div>
        {kind.value == "code" ? (
          <div class="field">
            <label class="field-label" for={id + "c"}>
              <span class="field-name">Code</span>
              <span class="field-type">body of a function of args, document, window; await and return work</span>
            </label>
            <textarea id={id + "c"} class="mono" rows={6} required spellcheck={false} placeholder="return document.title;" value={body.value} onInput={(event) => (body.value = event.currentTarget.value)} />
          </div>
        ) : (
          <div class="field">
            <label class="field-label" for={id + "p"}>
              <span class="field-name">Path</span>
              <span class="field-type">of a function, from window</span>
            </label>
            <input id={id + "p"} class="mono" required autocomplete="off" spellcheck={false} placeholder="myApp.cart.add" value={path.value} onInput={(event) => (path.value = event.currentTarget.value)} />
          </div>
        )}
        <Params params={params} json={json} />
        {error.value && (
          <p class="bad" role="alert">
            <Icon name="alert" /> {error.value}
          </p>
        )}
        <div class="actions end">
          <Button onClick={onClose}>Cancel</Button>
          <Button type="submit" tone="primary" aria-disabled={busy.value} aria-busy={busy.value}>
            Add
          </Button>
        </div>
      </form>
    </Dialog>
  );
}

interface SegmentProps {
  name: string;
  checked: boolean;
  disabled?: boolean;
  onChoose: () => void;
  children: string;
}

export function Segment({ name, checked, disabled = false, onChoose, children }: SegmentProps) {
  return (
    <label class="segment">
      <input type="radio" name={name} checked={checked} disabled={disabled} onChange={onChoose} />
      <span>{children}</span>
    </label>
  );
}

interface ParamsProps {
  params: { value: Param[] };
  json: { value: string | undefined };
}

function Params({ params, json }: ParamsProps) {
  const change = (key: number, to: Partial<Param>) => (params.value = params.value.map((one) => (one.key == key ? { ...one, ...to } : one)));
  /** The row that was just added: one goes on there. */
  const fresh = useRef(0);
  const focusOnce = (input: HTMLInputElement | null): void => {
    if (!input) return;
    fresh.current = 0;
    input.focus();
  };
  return (
    <fieldset class="field">
      <legend class="field-label">
        <span class="field-name">Parameters</span>
      </legend>
      {json.value !== undefined ? (
        <textarea class="mono" rows={6} aria-label="Parameters as JSON" spellcheck={false} value={json.value} onInput={(event) => (json.value = event.currentTarget.value)} />
      ) : (
        params.value.map((one, i) => (
          <div class="param-row" key={one.key} role="group" aria-label={`Parameter ${i + 1}`}>
            <input class="mono" aria-label="Name" placeholder="name" required ref={one.key == fresh.current ? focusOnce : null} autocomplete="off" spellcheck={false} value={one.name} onInput={(event) => change(one.key, { name: event.currentTarget.value })} />
            <select aria-label="Type" value={one.type} onChange={(event) => change(one.key, { type: event.currentTarget.value })}>
              {TYPES.map((type) => (
                <option key={type}>{type}</option>
              ))}
            </select>
            <input aria-label="Description" placeholder="description" autocomplete="off" value={one.description} onInput={(event) => change(one.key, { description: event.currentTarget.value })} />
            <label class="check">
              <input type="checkbox" checked={one.optional} onChange={(event) => change(one.key, { optional: event.currentTarget.checked })} /> optional
            </label>
            <Button icon="trash" tone="quiet" label={`Remove parameter ${i + 1}`} onClick={() => (params.value = params.value.filter((other) => other != one))} />
          </div>
        ))
      )}
      <div class="actions">
        {json.value === undefined && (
          <Button icon="add" tone="quiet" onClick={() => (params.value = [...params.value, { key: (fresh.current = ++keys), name: "", type: "string", description: "", optional: false }])}>
            Add a parameter
          </Button>
        )}
        <Button
          tone="quiet"
          aria-pressed={json.value !== undefined}
          onClick={() => {
            if (json.value === undefined) {
              json.value = JSON.stringify(paramsOf(params.value).params ?? {}, null, 2);
              return;
            }
            const rows = toRows(json.value);
            if (rows) params.value = rows;
            else flash("Some of this can't be shown as rows, so it stays JSON.", true);
            if (rows) json.value = undefined;
          }}
        >
          {json.value === undefined ? "Edit as JSON" : "Edit as rows"}
        </Button>
      </div>
    </fieldset>
  );
}

function paramsOf(given: Param[] | string): { params?: Record<string, unknown> } {
  if (typeof given != "string") {
    if (!given.length) return {};
    return { params: Object.fromEntries(given.map(({ name, type, description, optional }) => [name.trim(), { type, ...(description && { description }), ...(optional && { optional }) }])) };
  }
  if (!given.trim()) return {};
  let params: unknown;
  try {
    params = JSON.parse(given);
  } catch {
    throw Error("The parameters are not JSON.");
  }
  if (!isObject(params)) throw Error("The parameters must be an object.");
  return { params };
}

/** Undefined when rows can't say all of it. */
function toRows(json: string): Param[] | undefined {
  try {
    return Object.entries(paramsOf(json).params ?? {}).map(([name, param]) => {
      if (!isObject(param)) throw 0;
      const { type, description = "", optional = false, ...rest } = param;
      if (!TYPES.includes(type as string) || typeof description != "string" || Object.keys(rest).length) throw 0;
      return { key: ++keys, name, type: type as string, description, optional: !!optional };
    });
  } catch {
    return undefined;
  }
}
