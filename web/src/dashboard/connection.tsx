/** One connection: what it is, what it declares, and what can be done with it. */

import { useSignal } from "@preact/signals";
import * as api from "./api.ts";
import { attempt, store } from "./app.ts";
import { ask } from "./ask.tsx";
import { placeOf } from "./connections.tsx";
import { useDetails } from "./details.ts";
import { href } from "./route.ts";
import { Tools } from "./tools.tsx";
import type { Connection, Problem, Prompt, Resource } from "./types.ts";
import { Act, Age, Button, Empty, Icon, Long, StateTag, Tag, Text } from "./ui.tsx";
import { cut, plural } from "./text.ts";

export function ConnectionView({ id }: { id: string }) {
  const one = store.connections.value.get(id);
  const { details, error } = useDetails(one);
  if (!one) {
    if (!store.server.value) return <h1 tabIndex={-1}>Connection</h1>;
    return (
      <>
        <h1 tabIndex={-1}>Connection</h1>
        <Empty title="This connection is gone.">
          <p>
            Its tab was closed, or left. <a href={href("overview")}>See what is connected</a>
          </p>
        </Empty>
      </>
    );
  }
  return (
    <>
      <Head connection={one} />
      {error && (
        <p class="bad" role="alert">
          {error}
        </p>
      )}
      {one.state == "pending" && (
        <Empty title="This page waits for the approval of its origin.">
          <p>
            Nothing of it is published before. Approve or deny it in the <a href={href("overview")}>overview</a>.
          </p>
        </Empty>
      )}
      {!details && !error && <p class="soft">Reading what it declares…</p>}
      {details && (
        <>
          <Problems list={details.problemList} />
          <Tools details={details} />
          <Prompts list={details.prompts} />
          <Resources list={details.resources} />
        </>
      )}
    </>
  );
}

function Head({ connection: one }: { connection: Connection }) {
  const session = one.session ? store.sessions.value.get(one.session) : undefined;
  return (
    <header class="head">
      <p class="crumb">
        <a href={href("overview")}>
          <Icon name="back" /> Overview
        </a>
      </p>
      <div class="head-line">
        <h1 tabIndex={-1}>
          <Text value={one.label || "(no name)"} max={80} />
        </h1>
        <StateTag state={one.state} />
        {!one.current && <Tag tone="warn">old script: reload the page</Tag>}
        <Actions connection={one} />
      </div>
      {one.summary && <Long value={one.summary} max={400} />}
      <dl class="facts">
        <dt>Page</dt>
        <dd>
          {one.title && <Text value={one.title} max={100} />} <Text class="mono soft" value={one.url} max={140} />
        </dd>
        <dt>Tools begin with</dt>
        <dd>
          {one.bare ? "nothing: they have their own names" : <code><Text value={one.prefix + "__"} max={40} /></code>}
        </dd>
        <dt>Where</dt>
        <dd>
          <Text value={placeOf(one)} />
          {session && (
            <>
              , of <Text value={session.client.name || "an unknown client"} max={60} />
            </>
          )}
        </dd>
        <dt>Since</dt>
        <dd>
          <Age since={one.since} />
        </dd>
      </dl>
    </header>
  );
}

function Actions({ connection: one }: { connection: Connection }) {
  const live = one.state == "ready" || one.state == "joined";
  async function rename(): Promise<void> {
    const label = await ask({
      title: "Rename this connection",
      text: "Its tools get a new prefix at once, for every agent that sees them.",
      action: "Rename",
      field: { label: "Name", value: one.label },
    });
    if (label && label !== one.label) await attempt(() => api.rename(one.id, label), "Renamed.");
  }
  async function move(): Promise<void> {
    const to = await ask({
      title: "Move this connection",
      text: "Agents that see it now may no longer do so; those of the new place will.",
      action: "Move",
      field: {
        label: "To",
        value: "",
        help: "“channel:name” for a channel, or a name alone to be seen by every session.",
        suggestions: [...store.channels.peek().keys()].map((name) => "channel:" + name),
      },
    });
    if (to) await attempt(() => api.move(one.id, to), "Moved.");
  }
  async function disconnect(): Promise<void> {
    const sure = await ask({
      title: "Disconnect this page?",
      text: `“${cut(one.label, 60)}” leaves, and its ${plural(one.tools, "tool")} with it. The page stays open; it comes back when it is reloaded or connects again.`,
      action: "Disconnect",
      danger: true,
    });
    if (sure && (await attempt(() => api.disconnect(one.id), "Disconnected."))) location.hash = href("overview");
  }
  return (
    <div class="actions end">
      <Act icon="eye" disabled={!live} run={() => api.identify(one.id)} done="The tab shows who it is.">
        Identify
      </Act>
      <Button icon="pen" disabled={!live} onClick={rename}>
        Rename
      </Button>
      <Button icon="move" disabled={!live} onClick={move}>
        Move
      </Button>
      <Button icon="off" tone="danger" onClick={disconnect}>
        Disconnect
      </Button>
    </div>
  );
}

function Problems({ list }: { list: Problem[] }) {
  if (!list.length) return null;
  return (
    <section class="card attention" aria-labelledby="problems">
      <h2 id="problems">
        <Icon name="alert" /> {plural(list.length, "declaration")} of the page could not be used
      </h2>
      <ul class="rows">
        {list.slice(0, 100).map((one, i) => (
          <li class="row" key={i}>
            <span class="row-main">
              <span class="row-title">
                <Tag>{one.kind ?? "tool"}</Tag> <Text class="mono strong" value={one.name || `number ${one.index + 1}`} max={80} />
              </span>
              <Text value={one.reason} max={400} />
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Prompts({ list }: { list: Prompt[] }) {
  if (!list.length) return null;
  return (
    <section class="card" aria-labelledby="prompts">
      <header class="card-head">
        <h2 id="prompts">Prompts</h2>
        <span class="soft">{list.length}</span>
      </header>
      <ul class="rows">
        {list.map((one) => (
          <li class="row" key={one.name}>
            <span class="row-main">
              <span class="row-title">
                <Text class="strong" value={one.title || one.pageName} max={80} /> <Text class="mono soft" value={one.name} max={60} />
              </span>
              {one.description && <Long value={one.description} max={240} />}
              {one.arguments?.length > 0 && (
                <ul class="params">
                  {one.arguments.map((argument) => (
                    <li key={argument.name}>
                      <Text class="mono" value={argument.name} max={60} />
                      <span class="soft">{argument.required ? "required" : "optional"}</span>
                      <Text class="soft" value={argument.description || argument.title} max={200} />
                    </li>
                  ))}
                </ul>
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Resources({ list }: { list: Resource[] }) {
  const shown = useSignal(50);
  if (!list.length) return null;
  return (
    <section class="card" aria-labelledby="resources">
      <header class="card-head">
        <h2 id="resources">Resources</h2>
        <span class="soft">{list.length}</span>
      </header>
      <ul class="rows">
        {list.slice(0, shown.value).map((one, i) => (
          <li class="row" key={i}>
            <span class="row-main">
              <span class="row-title">
                <Text class="strong" value={one.title || one.name} max={80} />
                {one.uriTemplate && <Tag>template</Tag>}
                <Text class="soft" value={one.mimeType} max={60} />
              </span>
              <Text class="mono soft" value={one.uri ?? one.uriTemplate ?? ""} max={160} />
              {one.description && <Long value={one.description} max={240} />}
            </span>
          </li>
        ))}
      </ul>
      {list.length > shown.value && (
        <button class="link" type="button" onClick={() => (shown.value += 200)}>
          {plural(list.length - shown.value, "more resource")}
        </button>
      )}
    </section>
  );
}

