/** The view is in the address' hash, so that reload, back and forward keep it. */

import { signal } from "@preact/signals";

export type Route =
  | { view: "overview" }
  | { view: "connection"; id: string }
  | { view: "try"; id: string; tool: string }
  | { view: "activity"; call: string }
  | { view: "connect" };

export function parseRoute(hash: string): Route {
  const [view, first = "", second = ""] = hash.replace(/^#?\/?/, "").split("/").map(decode);
  switch (view) {
    case "connection":
      return first ? { view, id: first } : { view: "overview" };
    case "try":
      return { view, id: first, tool: second };
    case "activity":
      return { view, call: first };
    case "connect":
      return { view };
  }
  return { view: "overview" };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
}

/** The hash that leads to a view. */
export function href(view: Route["view"], ...parts: string[]): string {
  return "#/" + [view == "overview" ? "" : view, ...parts.map(encodeURIComponent)].join("/");
}

export const route = signal<Route>({ view: "overview" });

export function followHash(): void {
  const follow = () => (route.value = parseRoute(location.hash));
  addEventListener("hashchange", follow);
  follow();
}
