/** Fills the start page in with the address that it was opened at. */

for (const place of document.querySelectorAll("[data-url]")) place.textContent = location.origin + "/mcp";
