// What every script of this folder does with its client. Each step's outcome is
// a line of JSON on stdout, which the program beside this file reads.

const say = (line) => console.log(JSON.stringify(line));

async function step(name, run) {
  try {
    say({ step: name, detail: String((await run()) ?? 'yes') });
  } catch (error) {
    say({ step: name, error: error instanceof Error ? error.message : String(error) });
  }
}

function expect(ok, what) {
  if (!ok) throw new Error(`unexpected: ${JSON.stringify(what)}`);
}

// client: an SDK's Client, not connected yet. negotiated: the protocol version,
// once it is. changed: the Notices of list_changed.
export async function take(client, { transport, negotiated, changed, version }) {
  say({ step: 'version', detail: version });
  await step('connect', async () => {
    await client.connect(transport);
    return negotiated();
  });
  await step('tools', async () => {
    const { tools } = await client.listTools();
    expect(tools.some(({ name }) => name === 'hello__insert_title'), tools.map(({ name }) => name));
    return tools.length;
  });
  const call = async (name, args) => {
    const result = await client.callTool({ name, arguments: args });
    return { ...result, text: result.content[0].text };
  };
  await step('built-ins', async () => {
    const snippet = await call('get_embed_snippet', {});
    expect(!snippet.isError && snippet.text.includes('import("http'), snippet);
    const pages = await call('describe_tools', {});
    expect(!pages.isError && pages.structuredContent.connections[0].toolPrefix === 'hello', pages);
  });
  await step('page tool', async () => {
    const done = await call('hello__insert_title', { title: `from ${version}` });
    expect(!done.isError && done.text === `The heading is now: from ${version}`, done);
  });
  await step('isError', async () => {
    const failed = await call('hello__run_transient', { code: 'throw new Error("on purpose")' });
    expect(failed.isError && failed.text.includes('on purpose'), failed);
  });
  await step('list_changed', async () => {
    const change = changed.next('list_changed');
    say({ want: 'page' });
    await change;
  });
  await step('prompt', async () => {
    const { prompts } = await client.listPrompts();
    expect(prompts.some(({ name }) => name === 'hello__rewrite_page'), prompts);
    const { messages } = await client.getPrompt({ name: 'hello__rewrite_page', arguments: { style: 'formal' } });
    expect(messages[0].content.text.includes('in a formal style'), messages);
  });
  await step('resource', async () => {
    const { resources } = await client.listResources();
    expect(resources.some(({ uri }) => uri === 'page://hello/text'), resources);
    const { contents } = await client.readResource({ uri: 'page://hello/text' });
    expect(contents[0].text.includes(`from ${version}`), contents);
  });
  await step('close', () => client.close());
}

// Notices hands each notification to whoever waits for one just then. Waiting
// fails after a while, so that one that never comes is told as such.
export class Notices {
  #waiter;

  next(what) {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => reject(new Error(`no ${what} within 20 s`)), 20_000);
      this.#waiter = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  came = () => this.#waiter?.();
}
