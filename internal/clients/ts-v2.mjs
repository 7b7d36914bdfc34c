// The TypeScript SDK's second major version. The second argument is the mode of
// its version negotiation; without one the client has its defaults.
import { readFileSync } from 'node:fs';

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';

import { Notices, take } from './steps.mjs';

const [url, mode] = process.argv.slice(2);
const { version } = JSON.parse(readFileSync(new URL('node_modules/@modelcontextprotocol/client/package.json', import.meta.url), 'utf8'));
const changed = new Notices();
const client = new Client(
  { name: 'ts-v2', version },
  { listChanged: { tools: { onChanged: changed.came } }, ...(mode && { versionNegotiation: { mode } }) },
);
const transport = new StreamableHTTPClientTransport(new URL(url));
await take(client, { transport, version, changed, negotiated: () => client.getNegotiatedProtocolVersion() });
