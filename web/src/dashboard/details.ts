/** What a connection declares, read again whenever that changed. */

import { useEffect, useState } from "preact/hooks";
import * as api from "./api.ts";
import { messageOf } from "./app.ts";
import type { Connection, Details } from "./types.ts";

/** `error` is why the last attempt failed; details of before stay. */
export function useDetails(connection: Connection | undefined): { details: Details | undefined; error: string } {
  const [state, setState] = useState<{ details?: Details; error: string }>({ error: "" });
  const id = connection?.id;
  const rev = connection?.rev;
  useEffect(() => {
    if (id === undefined) return;
    // Not the last answer counts but the newest: under a stream of changes, each is overtaken.
    const isNewer = (one: Details, than: Details | undefined) => than?.id !== id || one.rev >= than.rev;
    api.getConnection(id).then(
      (details) => setState((before) => (isNewer(details, before.details) ? { details, error: "" } : before)),
      (error) => setState((before) => ({ ...before, error: messageOf(error) })),
    );
  }, [id, rev]);
  const details = state.details?.id === id ? state.details : undefined;
  return { details, error: state.error };
}
