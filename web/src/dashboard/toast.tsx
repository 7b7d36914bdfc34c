/** Notices of tools that agents registered, with their code; and how the user's own deeds ended. */

import * as api from "./api.ts";
import { attempt, dismiss, flashes, outdated, store, toasts, unflash } from "./app.ts";
import { href } from "./route.ts";
import { plural } from "./text.ts";
import type { Notice } from "./types.ts";
import { Act, Age, Button, Icon, Long, memo, Tag, Text } from "./ui.tsx";

const SHOWN = 5;

export function Toasts() {
  const all = toasts.value;
  const shown = all.slice(-SHOWN).reverse();
  return (
    <div class="toasts">
      <section aria-label="Tools that agents registered" hidden={!all.length}>
        {shown.map((notice, i) => (
          <Toast key={notice.id} notice={notice} latest={i == 0} removed={outdated.value.has(notice.id)} gone={!store.connections.value.has(notice.connection)} />
        ))}
        {all.length > 1 && (
          <p class="toasts-more">
            {all.length > SHOWN && <span>and {plural(all.length - SHOWN, "more", "more")}</span>}
            <Button tone="quiet" onClick={() => dismiss(...all.map((one) => one.id))}>
              Dismiss all
            </Button>
          </p>
        )}
      </section>
      <div class="flashes">
        {flashes.value.map((one) => (
          <p key={one.id} class={`flash ${one.failed ? "failed" : ""}`} role={one.failed ? "alert" : "status"}>
            <Icon name={one.failed ? "alert" : "check"} />
            <span dir="auto">{one.text}</span>
            <Button icon="close" tone="quiet" label="Dismiss" onClick={() => unflash(one.id)} />
          </p>
        ))}
      </div>
    </div>
  );
}

interface ToastProps {
  notice: Notice;
  /** Shows its code at once; of those before, it is folded. */
  latest: boolean;
  removed: boolean;
  gone: boolean;
}

const Toast = memo(({ notice: one, latest, removed, gone }: ToastProps) => (
  <article class="toast" aria-label={`${one.published} was registered`}>
    <header>
      <p>
        <Text class="strong" value={one.client.name || "An agent"} max={40} /> added a tool to <Text class="strong" value={one.label} max={40} /> <Age since={one.at} />
      </p>
      <Button icon="close" tone="quiet" label={`Dismiss the notice of ${one.published}`} onClick={() => dismiss(one.id)} />
    </header>
    <details open={latest}>
      <summary class="toast-name">
        <Text class="mono strong" value={one.published} max={60} /> {one.origin && <Tag tone="accent">by {one.origin.kind}</Tag>} {removed && <Tag>removed since</Tag>}
      </summary>
      {one.description && <Text class="toast-description" value={one.description} max={160} />}
      {one.origin && <Long value={one.origin.kind == "code" ? one.origin.code : one.origin.path} max={400} mono />}
    </details>
    <div class="actions">
      {!gone && (
        <a class="button" href={href("connection", one.connection)} onClick={() => dismiss(one.id)}>
          Show
        </a>
      )}
      {!gone && !removed && (
        <Act
          icon="trash"
          tone="danger"
          run={async () => {
            if (await attempt(() => api.removeTool(one.connection, one.name), `Removed ${one.published}.`)) dismiss(one.id);
          }}
        >
          Remove
        </Act>
      )}
      {gone && <span class="soft">Its page is gone.</span>}
    </div>
  </article>
));
