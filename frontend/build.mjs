// Bundles what editor.mjs names into one file, with the licences and the versions of what is in it.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const TARGET = new URL("../static/vendor/codemirror/", import.meta.url);
const digest = (content) => createHash("sha256").update(content).digest("hex");
const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");

const { outputFiles, metafile } = await build({
  absWorkingDir: new URL(".", import.meta.url).pathname,
  bundle: true,
  charset: "utf8",
  entryPoints: ["editor.mjs"],
  format: "iife",
  globalName: "CodeMirror",
  legalComments: "none",
  metafile: true,
  minify: true,
  target: "es2022",
  write: false,
});
const code = outputFiles[0].text;
const inputs = Object.keys(metafile.inputs).filter((path) => path.startsWith("node_modules/"));
const packages = [...new Set(inputs.map((path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)[1]))].sort();
const versions = packages.map((name) => [name, JSON.parse(read(`node_modules/${name}/package.json`)).version]);
const named = new Map();
for (const name of packages) {
  const text = read(`node_modules/${name}/LICENSE`).trim();
  named.set(text, [...(named.get(text) ?? []), name]);
}
const licences = [...named].map(([text, names]) => `${names.join(", ")}:\n\n${text}\n`);
const record = { sources: digest(read("editor.mjs")), lock: digest(read("package-lock.json")), code: digest(code) };

mkdirSync(TARGET, { recursive: true });
const header = `/*! CodeMirror, MIT (LICENSE). ${JSON.stringify({ ...record, packages: Object.fromEntries(versions) })} */\n`;
writeFileSync(new URL("codemirror.min.js", TARGET), header + code);
writeFileSync(new URL("LICENSE", TARGET), licences.join("\n---\n\n"));
