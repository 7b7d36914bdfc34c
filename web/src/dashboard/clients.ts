/** How each MCP client is told of this server. */

export interface Recipe {
  name: string;
  /** Where the text goes. */
  where: string;
  text: string;
}

/** `secured`: the server wants a token, which stands here as a placeholder. */
export function recipes(url: string, secured: boolean): Recipe[] {
  const bearer = "Bearer YOUR_TOKEN";
  const headers = secured ? { headers: { Authorization: bearer } } : {};
  const json = (value: unknown) => JSON.stringify(value, null, 2);
  const toml = secured ? `\nhttp_headers = { Authorization = ${JSON.stringify(bearer)} }` : "";
  const option = secured ? ` --header "Authorization: ${bearer}"` : "";
  return [
    { name: "Claude Code", where: "in a terminal", text: `claude mcp add --transport http jsbridge ${url}${option}` },
    { name: "Codex", where: "~/.codex/config.toml", text: `[mcp_servers.jsbridge]\nurl = ${JSON.stringify(url)}${toml}` },
    { name: "Gemini CLI", where: "in a terminal", text: `gemini mcp add --transport http jsbridge ${url}${option}` },
    { name: "Cursor", where: ".cursor/mcp.json", text: json({ mcpServers: { jsbridge: { url, ...headers } } }) },
    { name: "VS Code", where: ".vscode/mcp.json", text: json({ servers: { jsbridge: { type: "http", url, ...headers } } }) },
    { name: "Any other", where: "MCP over Streamable HTTP", text: url },
  ];
}
