/**
 * The tab's own id, by which a reload gets its tool prefix back.
 *
 * It rests in sessionStorage only while no page uses it: a duplicated tab copies the
 * storage of the live one, and must not find the id there.
 */

// A frame shares the storage of its tab's top page, but is none of it.
const key = () => "jsbridge" + (self == top ? "" : location.pathname);

/** Takes the tab's id out of the storage, or makes one. */
export function takeInstance(): string {
  let id: string | null = null;
  try {
    id = sessionStorage.getItem(key());
    sessionStorage.removeItem(key());
  } catch {
    // Sandboxed: no storage, so the id lives as long as the page.
  }
  // Not randomUUID, which plain http pages lack.
  return id || crypto.getRandomValues(new Uint32Array(5)).join("-");
}

/** Leaves the id for the tab's next page. */
export function leaveInstance(id: string): void {
  try {
    sessionStorage.setItem(key(), id);
  } catch {
    // As above.
  }
}
