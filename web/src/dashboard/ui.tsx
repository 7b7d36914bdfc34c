/** Small parts that every view is made of. What the server says is only ever text here. */

import { useSignal } from "@preact/signals";
import { Component, type ComponentChildren, type ComponentType, type JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { announce, attempt, flash, now } from "./app.ts";
import { age, cut, flat, plural } from "./text.ts";
import type { Connection } from "./types.ts";

const ICONS = {
  add: "M8 3v10M3 8h10",
  alert: "M8 2 1.5 13.5h13ZM8 6.5v3.2M8 11.8v.2",
  back: "M9.5 3.5 5 8l4.5 4.5",
  check: "m3 8.5 3.2 3.2L13 4.8",
  close: "m4 4 8 8M12 4l-8 8",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8Z",
  dark: "M13 9.6A5.6 5.6 0 0 1 6.4 3 5.6 5.6 0 1 0 13 9.6Z",
  down: "M8 2.5v8M4.5 7.5 8 11l3.5-3.5M3 13.5h10",
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 6.2a1.8 1.8 0 1 1 0 3.6 1.8 1.8 0 0 1 0-3.6Z",
  light: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6ZM8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.9.9M11.7 11.7l.9.9M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
  move: "M2.5 8h11M10 4.5 13.5 8 10 11.5",
  off: "M8 2.5v5M4.6 4.6a4.8 4.8 0 1 0 6.8 0",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  pen: "m3 13 .6-2.8 7-7 2.2 2.2-7 7Z",
  play: "M5 3.2v9.6L12.5 8Z",
  stop: "M4.5 4.5h7v7h-7Z",
  system: "M2 3h12v8H2ZM5.5 13.5h5",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.6 9h5.8l.6-9",
  up: "M8 11V2.5M4.5 6 8 2.5 11.5 6M3 13.5h10",
} as const;

export type IconName = keyof typeof ICONS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true">
      <path d={ICONS[name]} />
    </svg>
  );
}

/** Text of someone else: kept apart from what is around it, and cut. */
export function Text({ value = "", max = 120, class: name }: { value: string | undefined; max?: number; class?: string }) {
  const shown = flat(cut(value, max));
  return (
    <bdi class={name} title={shown === value ? undefined : cut(value, 2000)}>
      {shown}
    </bdi>
  );
}

/** Long text of someone else, with its line breaks, folded to some lines until it is asked for. */
export function Long({ value, max = 600, mono = false }: { value: string; max?: number; mono?: boolean }) {
  const open = useSignal(false);
  const long = value.length > max || value.split("\n", 13).length > 12;
  const shown = open.value || !long ? value : cut(value.split("\n").slice(0, 12).join("\n"), max).replace(/…?$/, "…");
  // Past this, a browser takes seconds for one text.
  const limited = flat(cut(shown, 500_000));
  return (
    <div class="long">
      {mono ? (
        <pre class="code" tabIndex={0} dir="auto">
          <code>{limited}</code>
        </pre>
      ) : (
        <p class="prose" dir="auto">
          {limited}
        </p>
      )}
      {long && (
        <button class="link" type="button" aria-expanded={open.value} onClick={() => (open.value = !open.value)}>
          {open.value ? "Show less" : `Show all (${plural(value.length, "character")})`}
        </button>
      )}
    </div>
  );
}

export function Age({ since }: { since: string }) {
  const from = Date.parse(since);
  if (Number.isNaN(from)) return null;
  return (
    <time class="age" dateTime={since} title={new Date(from).toLocaleString()}>
      {age(from, now.value)}
    </time>
  );
}

export function Tag({ tone = "plain", title, children }: { tone?: "plain" | "accent" | "good" | "warn" | "bad"; title?: string; children: ComponentChildren }) {
  return (
    <span class={"tag " + tone} title={title}>
      {children}
    </span>
  );
}

const STATES: Record<Connection["state"], [string, string]> = {
  ready: ["good", "ready"],
  joined: ["plain", "joining"],
  reconnecting: ["warn", "reconnecting"],
  suspended: ["plain", "asleep"],
  pending: ["warn", "needs approval"],
};

export function StateTag({ state }: { state: Connection["state"] }) {
  const [tone, words] = STATES[state] ?? ["plain", state];
  return <span class={"state " + tone}>{words}</span>;
}

interface ButtonProps extends Omit<JSX.IntrinsicElements["button"], "type" | "label" | "disabled"> {
  icon?: IconName;
  tone?: "primary" | "danger" | "quiet";
  disabled?: boolean;
  /** For buttons that show only an icon. */
  label?: string;
  type?: "submit" | "button";
}

export function Button({ icon, tone, label, children, type = "button", ...rest }: ButtonProps) {
  return (
    <button type={type} class={`button ${tone ?? ""} ${children ? "" : "bare"}`} aria-label={label} title={label} {...rest}>
      {icon && <Icon name={icon} />}
      {children && <span>{children}</span>}
    </button>
  );
}

interface ActProps extends ButtonProps {
  run: () => Promise<unknown>;
  /** What is said when it went well. */
  done?: string;
}

/** A button for work that takes a while: pressed once, and its failure is told. */
export function Act({ run, done, disabled, ...rest }: ActProps) {
  const busy = useSignal(false);
  return (
    <Button
      {...rest}
      disabled={disabled ?? false}
      aria-disabled={busy.value}
      aria-busy={busy.value}
      onClick={async () => {
        if (busy.value) return;
        busy.value = true;
        await attempt(run, done);
        busy.value = false;
      }}
    />
  );
}

export function Copy({ text, what, children }: { text: string; what: string; children?: ComponentChildren }) {
  const copied = useSignal(false);
  return (
    <Button
      icon={copied.value ? "check" : "copy"}
      tone="quiet"
      {...(!children && { label: `Copy ${what}` })}
      onClick={async () => {
        try {
          await navigator.clipboard.writeText(text);
        } catch {
          return flash("The browser does not let this page copy. Select the text and copy it.", true);
        }
        announce(`Copied ${what}.`);
        copied.value = true;
        setTimeout(() => (copied.value = false), 1500);
      }}
    >
      {children}
    </Button>
  );
}

/** Nothing is here yet, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

interface DialogProps {
  title: string;
  onClose: () => void;
  wide?: boolean;
  children: ComponentChildren;
}

export function Dialog({ title, onClose, wide = false, children }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const dialog = ref.current!;
    const opener = document.activeElement as HTMLElement | null;
    dialog.showModal();
    dialog.querySelector<HTMLElement>("[data-first]")?.focus();
    return () => {
      // The dialog is out of the document by now, so the browser can't give the focus back.
      const next = opener?.isConnected && opener != document.body ? opener : document.getElementById("main");
      if (!document.activeElement || document.activeElement == document.body) next?.focus({ preventScroll: true });
    };
  }, []);
  return (
    <dialog ref={ref} class={wide ? "wide" : ""} aria-labelledby={id} onClose={onClose}>
      <header>
        <h2 id={id}>{title}</h2>
        <Button icon="close" tone="quiet" label="Close" onClick={onClose} />
      </header>
      {children}
    </dialog>
  );
}

/** Renders again only when a property is another one: rows of long lists. */
export function memo<P extends object>(View: (props: P) => JSX.Element | null): ComponentType<P> {
  return class extends Component<P> {
    override shouldComponentUpdate(next: P): boolean {
      const keys = new Set([...Object.keys(next), ...Object.keys(this.props)]);
      return [...keys].some((key) => next[key as keyof P] !== this.props[key as keyof P]);
    }
    override render() {
      return <View {...(this.props as P)} />;
    }
  };
}

/** A view that fails takes only itself down. */
export class Guard extends Component<{ children: ComponentChildren }, { failure: string }> {
  override state = { failure: "" };
  static override getDerivedStateFromError(error: unknown) {
    return { failure: error instanceof Error ? error.message : String(error) };
  }
  override componentDidCatch(error: unknown): void {
    console.error("[jsbridge]", error);
  }
  override render() {
    if (!this.state.failure) return this.props.children;
    return (
      <Empty title="This view failed, which is a mistake in jsbridge.">
        <p>{this.state.failure}</p>
        <Button onClick={() => this.setState({ failure: "" })}>Try again</Button>
      </Empty>
    );
  }
}

export function save(name: string, content: string | Blob): void {
  const blob = typeof content == "string" ? new Blob([content], { type: "application/json" }) : content;
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
