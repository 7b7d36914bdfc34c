/** The frame around the views: where one goes, how the server is, and what is asked. */

import { useComputed } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Activity } from "./activity.tsx";
import * as api from "./api.ts";
import { announcement, store, updated, waiting, wake } from "./app.ts";
import { Asked, Asker } from "./ask.tsx";
import { Connect } from "./connect.tsx";
import { ConnectionView } from "./connection.tsx";
import { Overview } from "./overview.tsx";
import { href, route, type Route } from "./route.ts";
import { cut } from "./text.ts";
import { THEMES, theme } from "./theme.ts";
import { Toasts } from "./toast.tsx";
import { TryView } from "./try.tsx";
import { Button, Guard, Icon } from "./ui.tsx";

const TITLES: Record<Route["view"], string> = { overview: "Overview", connection: "Connection", try: "Try it", activity: "Activity", connect: "Connect" };
const NAVIGATION: Route["view"][] = ["overview", "try", "activity", "connect"];

export function Shell() {
  const main = useRef<HTMLElement>(null);
  const at = route.value;
  const first = useRef(true);
  const place = at.view + ("id" in at ? at.id : "");
  const label = at.view == "connection" ? store.connections.value.get(at.id)?.label : undefined;
  useEffect(() => {
    document.title = `${label ? cut(label, 60) : TITLES[at.view]} · jsbridge`;
  }, [at.view, label]);
  useEffect(() => {
    // Whoever follows a link goes on in the new view; at the start, the browser decides.
    if (!first.current) {
      scrollTo(0, 0);
      if (!document.activeElement?.closest(".pickers")) main.current?.querySelector<HTMLElement>("h1")?.focus({ preventScroll: true });
    }
    first.current = false;
  }, [place]);
  return (
    <>
      <a
        class="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault(); // The hash is the view's.
          main.current?.focus();
        }}
      >
        Skip to the content
      </a>
      <header class="top">
        <a class="brand" href={href("overview")} aria-label="jsbridge, overview">
          <svg viewBox="0 0 24 24" aria-hidden="true">
            <path d="M2 17h20M5 17v-4a7 7 0 0 1 14 0v4M12 6v11" />
          </svg>
          jsbridge
        </a>
        <nav aria-label="Views">
          {NAVIGATION.map((view) => (
            <a key={view} href={href(view)} aria-current={at.view == view || (view == "overview" && at.view == "connection") ? "page" : undefined}>
              {TITLES[view]}
              {view == "overview" && waiting.value > 0 && (
                <span class="badge" aria-label={`${waiting.value} waiting for approval`}>
                  {waiting.value}
                </span>
              )}
            </a>
          ))}
        </nav>
        <LinkState />
        <ThemeButton />
      </header>
      <Gone />
      <main id="main" ref={main} tabIndex={-1} class={"view-" + at.view}>
        <Guard key={place}>
          <View route={at} />
        </Guard>
      </main>
      <footer class="foot soft">
        {store.server.value && (
          <>
            <span>jsbridge {store.server.value.version}</span>
            <span class="mono">{store.server.value.mcp}</span>
          </>
        )}
      </footer>
      <Toasts />
      <Asker />
      {api.lock.value?.asking && (
        <Asked
          asked={{
            title: "This jsbridge needs its access token",
            text: api.lock.value.refused ? "The server did not take the token that was given. Try again." : "It was started with --token. The token stays in this tab, until it is closed.",
            action: "Unlock",
            field: { label: "Access token", value: "", secret: true },
          }}
          answer={(given) => (given ? api.giveBearer(given) : putLock(false))}
        />
      )}
      <p class="visually-hidden" role="status" aria-live="polite">
        {announcement.value}
      </p>
    </>
  );
}

function putLock(asking: boolean): void {
  if (api.lock.value) api.lock.value = { ...api.lock.value, asking };
}

function View({ route: at }: { route: Route }) {
  switch (at.view) {
    case "overview":
      return <Overview />;
    case "connection":
      return <ConnectionView key={at.id} id={at.id} />;
    case "try":
      return <TryView id={at.id} tool={at.tool} />;
    case "activity":
      return <Activity call={at.call} />;
    case "connect":
      return <Connect />;
  }
}

function LinkState() {
  const { state } = store.link.value;
  const words = { connecting: "connecting", live: "live", gone: "offline", locked: "locked" }[state];
  return <span class={`state link ${{ connecting: "warn", live: "good", gone: "bad", locked: "warn" }[state]}`}>{words}</span>;
}

function ThemeButton() {
  const next = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]!;
  return <Button icon={theme.value} tone="quiet" label={`Theme: ${theme.value}. Change to ${next}`} onClick={() => (theme.value = next)} />;
}

/** Says clearly that what is shown is not of now. */
function Gone() {
  const gone = useComputed(() => (store.link.value.state == "gone" ? store.link.value : undefined)).value;
  if (api.lock.value) {
    return (
      <div class="banner" role="status">
        This jsbridge was started with --token: nothing is shown without it.
        <Button onClick={() => putLock(true)}>Give the token</Button>
      </div>
    );
  }
  if (updated.value && !gone) {
    return (
      <div class="banner" role="status">
        Another version of jsbridge runs now.
        <Button onClick={() => location.reload()}>Reload this page</Button>
      </div>
    );
  }
  if (!gone) return null;
  return (
    <div class="banner bad" role="alert">
      <Icon name="alert" />
      <span>
        <strong>jsbridge is not answering.</strong> {store.server.value ? "What you see is from before. " : "Start it with “jsbridge”. "}
        This page tries again by itself.
      </span>
      <Button onClick={wake}>Try now</Button>
    </div>
  );
}

