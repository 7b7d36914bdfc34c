// The TypeScript SDK's first major version.
import { readFileSync } from 'node:fs';

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js';

import { Notices, take } from './steps.mjs';

const { version } = JSON.parse(readFileSync(new URL('node_modules/@modelcontextprotocol/sdk/package.json', import.meta.url), 'utf8'));
const client = new Client({ name: 'ts-v1', version });
const changed = new Notices();
client.setNotificationHandler(ToolListChangedNotificationSchema, changed.came);
const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
await take(client, { transport, version, changed, negotiated: () => transport.protocolVersion });
