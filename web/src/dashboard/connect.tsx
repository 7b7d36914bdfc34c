/** The line that connects a page, and how to add each MCP client. */

import { useSignal } from "@preact/signals";
import { useEffect, useId } from "preact/hooks";
import { Segment } from "./add.tsx";
import * as api from "./api.ts";
import { messageOf, store } from "./app.ts";
import { recipes } from "./clients.ts";
import { bytes, clientName, cut } from "./text.ts";
import { Copy, Icon } from "./ui.tsx";

const FORMS = {
  import: ["Import", "One line for the console of the page's developer tools, or for a script of the page."],
  script: ["Script tag", "For the page's HTML, where you can change it."],
  inline: ["Inline", "All of the script in one line: for pages whose policy forbids loading it from here."],
} as const;

type Form = keyof typeof FORMS;
type Target = "default" | "workspace" | "connect" | "session";

export function Connect() {
  const choice = useSignal<Target | undefined>(undefined);
  // Clients with sessions don't see the default workspace. If only such are here, the line for one is what is meant.
  const eras = [...store.sessions.value.values()].map((one) => one.era);
  const target: Target = choice.value ?? (eras.includes("session") && !eras.includes("stateless") ? "session" : "default");
  const workspace = useSignal("");
  const key = target == "workspace" ? slug(workspace.value) : "";
  const mcp = store.server.value?.mcp ?? "";
  return (
    <>
      <h1 tabIndex={-1}>Connect</h1>
      <section class="card" aria-labelledby="clients">
        <header class="card-head">
          <h2 id="clients">1. Add jsbridge to your MCP client</h2>
        </header>
        <p class="soft">
          Then ask the agent for “the jsbridge embed snippet”: it gives the line below, for its own session.
          {key && " These addresses are those of the workspace that you chose below."}
        </p>
        {mcp && <Clients url={key ? `${mcp.replace(/\/$/, "")}/${encodeURIComponent(key)}` : mcp} />}
      </section>
      <Snippet target={target} choose={(one) => (choice.value = one)} workspace={workspace} />
      <section class="card" aria-labelledby="declare">
        <header class="card-head">
          <h2 id="declare">3. Declare a tool in the page</h2>
        </header>
        <Block what="the example" text={EXAMPLE} />
        <p class="soft">Do it before or after connecting; agents see the change at once, and so does the overview.</p>
      </section>
    </>
  );
}

const EXAMPLE = `window.__mcpTools = [{
  name: "page_title",
  description: "Gives the title of this page, with a prefix.",
  params: { prefix: { type: "string", optional: true } },
  example: { prefix: "Title: " },
  fn: ({ prefix = "" }) => prefix + document.title,
}];`;

const slug = (text: string): string => text.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 64);

function Clients({ url }: { url: string }) {
  const chosen = useSignal(0);
  const id = useId();
  const list = recipes(url, api.guarded.value);
  const one = list[chosen.value]!;
  return (
    <>
      <fieldset class="segments">
        <legend class="visually-hidden">MCP client</legend>
        {list.map(({ name }, i) => (
          <Segment key={name} name={id} checked={i == chosen.value} onChoose={() => (chosen.value = i)}>
            {name}
          </Segment>
        ))}
      </fieldset>
      <Block what={`the lines for ${one.name}`} where={one.where} text={one.text} />
    </>
  );
}

interface SnippetProps {
  target: Target;
  choose: (target: Target) => void;
  workspace: { value: string };
}

function Snippet({ target, choose, workspace }: SnippetProps) {
  const form = useSignal<Form>("import");
  const connect = useSignal("");
  const session = useSignal("");
  const answer = useSignal<{ snippet: string; connect: string } | undefined>(undefined);
  const error = useSignal("");
  const id = useId();
  const sessions = [...store.sessions.value.values()].filter((one) => one.era == "session");
  if (target == "session" && !session.value && sessions[0]) session.value = sessions[0].id;

  const wanted: api.SnippetRequest | undefined = {
    default: { form: form.value },
    workspace: slug(workspace.value) ? { form: form.value, workspace: slug(workspace.value) } : undefined,
    connect: connect.value.trim() ? { form: form.value, connect: connect.value.trim() } : undefined,
    session: session.value ? { form: form.value, session: session.value } : undefined,
  }[target];
  const asked = JSON.stringify(wanted);
  const epoch = store.server.value?.epoch;
  useEffect(() => {
    error.value = "";
    if (!wanted || !epoch) return void (answer.value = undefined);
    let stale = false;
    // Not one request for each key.
    const timer = setTimeout(() => {
      api.getSnippet(wanted).then(
        (got) => stale || (answer.value = got),
        (failure) => stale || ((answer.value = undefined), (error.value = messageOf(failure))),
      );
    }, 150);
    return () => {
      stale = true;
      clearTimeout(timer);
    };
  }, [asked, epoch]);

  return (
    <section class="card" aria-labelledby="snippet">
      <header class="card-head">
        <h2 id="snippet">2. Connect a page</h2>
      </header>
      <div class="pickers">
        <label class="broad">
          <span>Who sees it</span>
          <select value={target} onChange={(event) => choose(event.currentTarget.value as Target)}>
            <option value="default">clients without sessions (the default workspace)</option>
            <option value="session" disabled={!sessions.length}>
              {sessions.length ? "one session of now" : "one session (none is here)"}
            </option>
            <option value="workspace">clients of a workspace, at /mcp/name</option>
            <option value="connect">every session, or those of a channel</option>
          </select>
        </label>
        {target == "workspace" && (
          <label>
            <span>Workspace</span>
            <input list={id + "w"} autocomplete="off" spellcheck={false} placeholder="my-project" value={workspace.value} onInput={(event) => (workspace.value = event.currentTarget.value)} />
            <datalist id={id + "w"}>
              {[...store.workspaces.value.keys()].filter((one) => slug(one) === one).map((one) => (
                <option key={one} value={one} />
              ))}
            </datalist>
          </label>
        )}
        {target == "connect" && (
          <label>
            <span>Name, or channel:name</span>
            <input list={id + "c"} autocomplete="off" spellcheck={false} placeholder="shop, or channel:team" value={connect.value} onInput={(event) => (connect.value = event.currentTarget.value)} />
            <datalist id={id + "c"}>
              {[...store.channels.value.keys()].map((one) => (
                <option key={one} value={"channel:" + one} />
              ))}
            </datalist>
          </label>
        )}
        {target == "session" && (
          <label>
            <span>Session</span>
            <select value={session.value} onChange={(event) => (session.value = event.currentTarget.value)}>
              {sessions.map((one) => (
                <option key={one.id} value={one.id}>
                  {cut(clientName(one.client), 60)}
                </option>
              ))}
            </select>
          </label>
        )}
      </div>
      <fieldset class="segments">
        <legend class="visually-hidden">Form of the snippet</legend>
        {(Object.keys(FORMS) as Form[]).map((one) => (
          <Segment key={one} name={id} checked={form.value == one} onChoose={() => (form.value = one)}>
            {FORMS[one][0]}
          </Segment>
        ))}
      </fieldset>
      <p class="soft">{FORMS[form.value][1]}</p>
      {answer.value ? (
        <Block what="the snippet" where={answer.value.snippet.length > 1000 ? bytes(answer.value.snippet.length) : ""} text={answer.value.snippet} />
      ) : error.value ? (
        <p class="bad" role="alert">
          <Icon name="alert" /> {error.value}
        </p>
      ) : (
        <p class="soft">{wanted ? "…" : "Give a name to get the line."}</p>
      )}
    </section>
  );
}

function Block({ text, what, where = "" }: { text: string; what: string; where?: string }) {
  return (
    <figure class="block">
      <figcaption>
        <span class="soft">{where}</span>
        <Copy text={text} what={what}>
          Copy
        </Copy>
      </figcaption>
      <pre class="code" tabIndex={0}>
        <code>{text}</code>
      </pre>
    </figure>
  );
}
