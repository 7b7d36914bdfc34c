/** Everything in one look: what is connected, who uses it, what just happened. */

import { useSignal } from "@preact/signals";
import * as api from "./api.ts";
import { store } from "./app.ts";
import { ask } from "./ask.tsx";
import { CallLine } from "./calls.tsx";
import { byLabel, Row } from "./connections.tsx";
import { href } from "./route.ts";
import { clientName, matches, plural } from "./text.ts";
import type { Connection, Counters, Session } from "./types.ts";
import { Act, Age, Copy, Empty, Icon, memo, Tag, Text } from "./ui.tsx";

/** Below, a filter would be in the way. */
const FILTER_FROM = 8;

export function Overview() {
  return (
    <>
      <h1 tabIndex={-1} class="visually-hidden">
        Overview
      </h1>
      <Waiting />
      <Numbers />
      <div class="columns">
        <Connections />
        <div class="side">
          <Recent />
          <Sessions />
          <Allowed />
        </div>
      </div>
    </>
  );
}

function Numbers() {
  const c: Counters = store.counters.value;
  const one = (value: number, name: string, tone = "") => (
    <div class={"number " + (value ? tone : "")}>
      <dt>{name}</dt>
      <dd>{value.toLocaleString("en")}</dd>
    </div>
  );
  return (
    <dl class="numbers">
      {one(store.connections.value.size, "Connections")}
      {one(store.sessions.value.size, "Sessions")}
      {one(c.calls, "Calls")}
      {one(c.running, "Running", "accent")}
      {one(c.failed, "Failed", "bad")}
      {c.refused > 0 && one(c.refused, "Frames refused", "warn")}
    </dl>
  );
}

function Waiting() {
  const { waiting } = store.origins.value;
  if (!waiting.length) return null;
  return (
    <section class="card attention" aria-labelledby="waiting">
      <h2 id="waiting">
        <Icon name="alert" /> {waiting.length == 1 ? "A website asks to connect" : `${waiting.length} websites ask to connect`}
      </h2>
      <p>Their pages could then offer tools to your agents, and what these return is read by them. Approve only what you know.</p>
      <ul class="rows">
        {waiting.map((one) => (
          <li class="row" key={one.origin}>
            <span class="row-main">
              <Text class="strong mono" value={one.origin} max={100} />
              <span class="row-sub soft">
                {plural(one.pages, "page")}, <Age since={one.since} />
              </span>
            </span>
            <span class="row-facts">
              {one.origin == "null" && <span class="soft">Pages without an origin of their own can't be approved.</span>}
              {one.origin != "null" && (
                <Act tone="primary" run={() => api.approve(one.origin)} done={`${one.origin} is approved.`} aria-label={`Approve ${one.origin}`}>
                  Approve
                </Act>
              )}
              <Act run={() => api.refuse(one.origin)} done={`${one.origin} was sent away.`} aria-label={`Deny ${one.origin}`}>
                Deny
              </Act>
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

interface Group {
  key: string;
  title: string;
  note: string;
  members: Connection[];
}

/** Root connections, then each channel, each workspace, each session. */
function groupsOf(connections: Connection[]): Group[] {
  const groups = new Map<string, Group>();
  const group = (key: string, title: string, note = ""): Group => {
    let one = groups.get(key);
    if (!one) groups.set(key, (one = { key, title, note, members: [] }));
    return one;
  };
  group("0", "Root connections", "seen by every session");
  const named = (key: string, title: string, sessions: number) => group(key, title, sessions ? plural(sessions, "session") : "no session");
  for (const { id, sessions } of store.channels.value.values()) named("1" + id, "Channel " + id, sessions);
  for (const { id, connections: n, sessions } of store.workspaces.value.values()) if (n) named("2" + id, "Workspace " + id, sessions);
  for (const one of connections) {
    if (one.kind == "root") group("0", "").members.push(one);
    else if (one.kind == "channel") group("1" + one.channel, "Channel " + one.channel).members.push(one);
    else if (one.kind == "workspace") group("2" + one.workspace, "Workspace " + one.workspace).members.push(one);
    else {
      const session = one.session ? store.sessions.value.get(one.session) : undefined;
      group("3" + (one.session ?? ""), session ? `Only ${clientName(session.client)}` : "A session's own", "connected by its snippet").members.push(one);
    }
  }
  return [...groups.values()].filter((one) => one.members.length).sort((a, b) => (a.key < b.key ? -1 : 1));
}

function Connections() {
  const query = useSignal("");
  const all = [...store.connections.value.values()].sort(byLabel);
  const shown = all.filter((one) => matches(query.value, one.label, one.prefix, one.title, one.origin, one.url, one.channel ?? "", one.workspace ?? ""));
  const known = store.server.value !== undefined;
  return (
    <section class="card" aria-labelledby="connections">
      <header class="card-head">
        <h2 id="connections">Connections</h2>
        {all.length >= FILTER_FROM && <input class="end" type="search" aria-label="Filter connections" placeholder="Filter" value={query.value} onInput={(event) => (query.value = event.currentTarget.value)} />}
      </header>
      {groupsOf(shown).map((group) => (
        <section class="group" key={group.key} aria-label={group.title}>
          <h3>
            <Text value={group.title} max={60} /> <span class="soft">{[plural(group.members.length, "page"), group.note].filter(Boolean).join(", ")}</span>
          </h3>
          <ul class="rows">
            {group.members.map((one) => (
              <Row key={one.id} connection={one} />
            ))}
          </ul>
        </section>
      ))}
      {known && !all.length && (
        <Empty title="No page is connected yet.">
          <p>
            A page joins by one line of script. <a href={href("connect")}>Get the line</a>, paste it into the console of the page's developer tools, and the page appears here with its tools.
          </p>
        </Empty>
      )}
      {all.length > 0 && !shown.length && <Empty title="No connection has these words." />}
    </section>
  );
}

function Recent() {
  const calls = [...store.calls.value.values()].slice(-6).reverse();
  return (
    <section class="card" aria-labelledby="recent">
      <header class="card-head">
        <h2 id="recent">Latest calls</h2>
        {calls.length > 0 && (
          <a class="end" href={href("activity")}>
            All activity
          </a>
        )}
      </header>
      {calls.length ? (
        <ul class="rows">
          {calls.map((call) => (
            <CallLine key={call.id} call={call} />
          ))}
        </ul>
      ) : (
        <Empty title="Nothing was called yet.">
          <p>
            Ask your agent to use a tool, or <a href={href("try")}>call one yourself</a>.
          </p>
        </Empty>
      )}
    </section>
  );
}

function Sessions() {
  const sessions = [...store.sessions.value.values()].sort((a, b) => (a.since < b.since ? 1 : -1));
  const mcp = store.server.value?.mcp;
  return (
    <section class="card" aria-labelledby="sessions">
      <header class="card-head">
        <h2 id="sessions">Sessions</h2>
      </header>
      {sessions.length > 0 ? (
        <ul class="rows">
          {sessions.slice(0, 100).map((one) => (
            <SessionRow key={one.id} session={one} />
          ))}
          {sessions.length > 100 && <li class="row soft">and {sessions.length - 100} more</li>}
        </ul>
      ) : (
        <Empty title="No MCP client is here.">
          <p>Add this address to one, and start it:</p>
          {mcp && (
            <p class="snippet-line">
              <code>{mcp}</code> <Copy text={mcp} what="the address" />
            </p>
          )}
          <p>
            <a href={href("connect")}>How, for each client</a>
          </p>
        </Empty>
      )}
    </section>
  );
}

const SessionRow = memo(({ session: one }: { session: Session }) => (
  <li class="row">
    <span class="row-main">
      <span class="row-title">
        <Text class="strong" value={one.client.name || "Unknown client"} max={50} /> <Text class="soft" value={one.client.version} max={30} />
      </span>
      <span class="row-sub soft">
        <span title={one.era == "stateless" ? "The protocol without sessions" : "The protocol with sessions"}>
          MCP <Text value={one.protocol || "of unknown version"} max={20} />
        </span>
        {one.workspace && (
          <span>
            workspace <Text value={one.workspace} max={40} />
          </span>
        )}
        {one.channels?.length > 0 && (
          <span>
            {one.channels.length == 1 ? "channel " : "channels "}
            <Text value={one.channels.join(", ")} max={80} />
          </span>
        )}
        <span>sees {plural(one.connections, "page")}</span>
      </span>
    </span>
    <span class="row-facts">
      {one.running > 0 && <Tag tone="accent">{one.running} running</Tag>}
      <Age since={one.since} />
    </span>
  </li>
));

function Allowed() {
  const { allowed } = store.origins.value;
  if (!allowed.length) return null;
  return (
    <section class="card" aria-labelledby="allowed">
      <header class="card-head">
        <h2 id="allowed">Approved websites</h2>
      </header>
      <ul class="rows">
        {allowed.map((one) => (
          <li class="row" key={one.origin}>
            <Text class="row-main mono" value={one.origin} max={80} />
            <span class="row-facts">
              {one.by == "flag" ? (
                <Tag title="Approved by --allow-origin, so it can't be taken back here">by flag</Tag>
              ) : (
                <Act
                  icon="trash"
                  tone="quiet"
                  label={`Take back the approval of ${one.origin}`}
                  run={async () => {
                    if (await ask({ title: "Take back this approval?", text: `Pages of ${one.origin} are disconnected, and wait for approval when they come again.`, action: "Take back", danger: true })) await api.refuse(one.origin);
                  }}
                />
              )}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}
