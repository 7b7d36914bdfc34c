// Makes npm/, what the package holds, from dist/ and the types of src/. npm runs it before it packs.

import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "npm");

rmSync(out, { recursive: true, force: true });
mkdirSync(out);
packScript();
packTypes();
copyFileSync(join(here, "..", "LICENSE"), join(out, "LICENSE"));

/** The served script asks where it came from. In an app's bundle that is the app's server, or a path of the machine that built it. */
function packScript() {
  const served = join(here, "dist", "client.js");
  if (!existsSync(served)) throw Error("dist/client.js is missing: run go generate ./web");
  const parts = readFileSync(served, "utf8").split("import.meta.url");
  if (parts.length < 2) throw Error("dist/client.js has no import.meta.url to replace");
  writeFileSync(join(out, "client.js"), parts.join('""'));
}

/** The declarations that client.d.ts needs, with specifiers that every compiler resolves. */
function packTypes() {
  const all = mkdtempSync(join(tmpdir(), "jsbridge-types-"));
  try {
    const tsc = join(dirname(createRequire(import.meta.url).resolve("typescript/package.json")), "bin", "tsc");
    const options = ["--noEmit", "false", "--declaration", "--emitDeclarationOnly", "--rootDir", "src", "--outDir", all];
    execFileSync(process.execPath, [tsc, "-p", "tsconfig.json", ...options], { cwd: here, stdio: "inherit" });
    const names = new Set(["client"]);
    for (const name of names) {
      const text = readFileSync(join(all, name + ".d.ts"), "utf8");
      const mended = text.replace(/(["'])\.\/([\w-]+)\.ts\1/g, (_, quote, imported) => {
        names.add(imported);
        return `${quote}./${imported}.js${quote}`;
      });
      writeFileSync(join(out, name + ".d.ts"), mended);
    }
  } finally {
    rmSync(all, { recursive: true });
  }
}
