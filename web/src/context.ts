/** What a page's functions get besides their arguments. Types only. */

/** What the client can be asked for, as in MCP. */
export interface AgentCapabilities {
  elicitation?: { form?: object; url?: object };
  sampling?: object;
  roots?: object;
}

/** The MCP client that calls. Texts are empty where it did not say. */
export interface Agent {
  name: string;
  version: string;
  capabilities: AgentCapabilities;
}

/** What came of a question to the human: MCP's ElicitResult. */
export interface ElicitResult {
  /** `accept`; or they said no, or went away without an answer. */
  action: "accept" | "decline" | "cancel";
  /** With `accept` of a form: what they filled in. */
  content?: Record<string, string | number | boolean | string[]>;
}

/** What the client's model answered: MCP's CreateMessageResult. */
export interface SampleResult {
  role: "user" | "assistant";
  /** One MCP content item, such as `{type: "text", text}`; some clients give several. */
  content: any;
  model: string;
  stopReason?: string;
}

/** MCP's `sampling/createMessage` params, but that texts may stand for messages and for content. */
export interface SampleRequest {
  messages: string | readonly (string | object)[];
  /** Default: 1000. */
  maxTokens?: number;
  systemPrompt?: string;
  [param: string]: unknown;
}

/** A folder or file that the client works on. */
export interface Root {
  uri: string;
  name?: string;
}

/** The second argument of the functions of tools, prompts and resources. Its functions need no `this`. */
export interface ToolContext {
  /** Aborted when the agent cancels, the limit is over or the connection ends. */
  signal: AbortSignal;
  /** Who calls. */
  agent: Agent;
  /** Reports progress, if the client wants it. */
  progress(done: number, total?: number, message?: string): void;
  /** Sends a log line to the client. `level` is one of MCP's: `debug`, `info`, `notice`, `warning`, `error`, ... */
  log(level: string, data: unknown): void;
  /**
   * Asks the human at the client: with a form, of a JSON Schema whose properties are flat, or by sending them
   * to an address. Or takes MCP's `elicitation/create` params.
   *
   * Rejects when the call ends first, and with `code` "-32021" when the client can't do that; so do the next two.
   */
  elicit(message: string, schemaOrUrl?: object | string | URL): Promise<ElicitResult>;
  elicit(params: object): Promise<ElicitResult>;
  /** Asks the client's model. A text is a message of the user. */
  sample(request: string | SampleRequest): Promise<SampleResult>;
  /** The folders that the client works on. */
  roots(): Promise<Root[]>;
  /** In a second call, after `{inputRequests}` was returned: the client's answers, by the keys of the requests. */
  inputResponses?: Record<string, any> | undefined;
  /** In a second call: the `requestState` that was returned with the requests. Clients may have tampered with it. */
  requestState?: string | undefined;
}

/** Also `uri`: what was asked for, as the page itself would write it. */
export interface ResourceContext extends ToolContext {
  uri: string;
}
