/**
 * What a tab keeps through a reload: its own id, by which it gets its tool prefix back,
 * and the tools that were added at run time.
 *
 * It rests in sessionStorage only while no page uses it: a duplicated tab copies the
 * storage of the live one, and must not find it there.
 */

import { attempt } from "./readable.ts";

// A frame shares the storage of its tab's top page, but is none of it.
const key = () => "jsbridge" + (self == top ? "" : location.pathname);

/** Takes out what `leave` left: the id, or `""`, and text of the extras. */
export function take(): string[] {
  // Sandboxed pages have no storage, so it lives as long as the page.
  const text = attempt(() => sessionStorage.getItem(key()));
  attempt(() => sessionStorage.removeItem(key()));
  return (text || "").split(/ (.*)/s);
}

/** Leaves an id, which has no space, and a text for the tab's next page. */
export function leave(...texts: [id: string, text: string]): void {
  // No storage, as above, or a full one.
  attempt(() => sessionStorage.setItem(key(), texts.join(" ")));
}
