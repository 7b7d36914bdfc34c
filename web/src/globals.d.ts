/** What a page declares, and what the bridge adds to it. */
interface Window {
  __mcpTools?: unknown;
  __mcpPrompts?: unknown;
  __mcpResources?: unknown;
  __mcpSummary?: unknown;
  __mcpAppName?: unknown;
  /** Tools that come and go while the page runs. */
  __mcpToolBus?: import("./bus.ts").ToolBus;
  /** Tells that a resource has changed. `uri` is as the page declared it, or as its template gives it. There while a bridge is. */
  __mcpResourceUpdated?: ((uri: string) => void) | undefined;
  /** Names this tab for the agent; asks for the name when called without one. */
  __mcpRename?: ((label?: string) => void) | undefined;
  /** Leaves for good: no reconnect. */
  __mcpLeaveChannel?: (() => void) | undefined;
  /** Leaves and takes the bridge off the page. */
  __mcpDisconnect?: (() => void) | undefined;
  /** Connects again, after any of the above or an end that the console told of. */
  __mcpReconnect?: () => void;
}
