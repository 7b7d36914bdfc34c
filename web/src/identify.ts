/** Shows the human which tab this is: a badge that blocks nothing and goes by itself. */
export function showBadge(text: string): void {
  const badge = document.createElement("div");
  badge.setAttribute("role", "status");
  // Through the object model, which no content policy forbids. Nothing moves.
  badge.style.cssText =
    "all:initial;position:fixed;top:0;right:0;z-index:2147483647;padding:1em;font:1em system-ui;color:#fff;background:#00f";
  const shadow = badge.attachShadow({ mode: "open" });
  document.body?.append(badge);
  // After it is in the page, or screen readers stay silent.
  shadow.textContent = text;
  setTimeout(() => badge.remove(), 5_000);
}
