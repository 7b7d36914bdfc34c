/** Asks the human at the tab whether an agent may add a tool. */

import type { Recipe } from "./dynamic.ts";

/** A click that comes sooner was meant for what was there before. */
const CALM_MS = 500;

/** The question before: there is one box at a time. */
let before: Promise<unknown> = Promise.resolve();

/** Resolves when the human allows it. Rejects when they refuse, or when `signal` aborts. */
export function askHuman(recipe: Recipe, signal: AbortSignal): Promise<void> {
  const answer = before.then(() => show(recipe, signal));
  before = answer.catch(() => {});
  return answer;
}

function show({ name, description, origin }: Recipe, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const host = document.createElement("div");
    // Through the object model, which no content policy forbids, and stronger than the page's rules.
    host.style.cssText = important(`all:initial;display:block;position:fixed;inset:auto 1em 1em auto;z-index:2147483647`);
    const box = add(host.attachShadow({ mode: "closed" }), "div", "");
    box.style.cssText =
      "color-scheme:light dark;background:Canvas;color:CanvasText;border:2px solid;padding:1em;font:16px system-ui;box-sizing:border-box;width:min(32em,calc(100vw - 2em));max-height:calc(100vh - 2em);overflow:auto";
    box.tabIndex = -1;
    box.setAttribute("role", "dialog");
    const title = "An agent wants to add a tool to this page";
    box.setAttribute("aria-label", title);
    add(box, "div", title).style.fontWeight = "bold";
    add(box, "div", visible(name)).style.cssText = "margin-top:.5em;font-family:monospace";
    add(box, "div", visible(description)).style.cssText = "max-height:6em;overflow:auto";
    const source = add(box, "pre", visible(origin.kind == "code" ? origin.code : origin.path));
    source.style.cssText = "max-height:40vh;overflow:auto;white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid;padding:.5em";
    // To be scrolled by the keyboard.
    source.tabIndex = 0;
    const shown = performance.now();
    const hadFocus = document.activeElement as HTMLElement | null;

    function close(): void {
      const focused = document.activeElement == host;
      host.remove();
      signal.removeEventListener("abort", cancelled);
      if (focused) hadFocus?.focus?.();
    }
    function cancelled(): void {
      close();
      reject(signal.reason);
    }
    function refuse(): void {
      close();
      reject(Error("the human at the page refused this tool"));
    }
    function button(label: string, act: () => void): void {
      const made = add(box, "button", label);
      made.style.cssText = "font:inherit;margin-right:1em;padding:.25em 1em";
      made.addEventListener("click", (event) => {
        // A script's click is no human's.
        if (event.isTrusted && performance.now() - shown >= CALM_MS) act();
      });
    }
    button("Allow", () => {
      close();
      resolve();
    });
    button("Refuse", refuse);
    box.addEventListener("keydown", (event) => {
      if (event.isTrusted && event.key == "Escape") refuse();
    });
    signal.addEventListener("abort", cancelled);
    (document.body ?? document.documentElement).append(host);
    // On no button, or a key pressed for the page would answer.
    box.focus();
  });
}

function add(parent: Node, tag: string, text: string): HTMLElement {
  const element = document.createElement(tag);
  element.textContent = text;
  parent.appendChild(element);
  return element;
}

/** Shows characters that would hide or reorder others. */
const visible = (text: string) => text.replace(/[^\P{C}\n\t]/gu, (char) => `\\u{${char.codePointAt(0)!.toString(16)}}`);

const important = (style: string) => style.replaceAll(";", "!important;") + "!important";
