// Build what the console uses of npm packages into ../static/vendor, with their licences.
// Each entry of entries/ becomes one module; icons.txt names the icons of the sprite.

import { build } from "esbuild";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = join(here, "../static/vendor");
const packages = join(here, "node_modules");

await rm(out, { recursive: true, force: true });
await mkdir(out, { recursive: true });
const names = (await readdir(join(here, "entries"))).sort();
const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: names.map((name) => `entries/${name}`),
  outdir: out,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2023",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
});
await writeFile(join(out, "icons.svg"), await sprite());
await writeFile(join(out, "LICENSES.txt"), await licences(used(metafile)));

/** Return one SVG with a symbol for each icon. */
async function sprite() {
  const wanted = (await readFile(join(here, "icons.txt"), "utf8")).trim().split("\n");
  const symbols = wanted.map(async (name) => {
    const svg = await readFile(join(packages, "lucide-static/icons", `${name}.svg`), "utf8");
    const shapes = svg.slice(svg.indexOf(">", svg.indexOf("<svg")) + 1, svg.indexOf("</svg>"));
    const style = 'fill="none" stroke="currentColor" stroke-width="1.75" stroke-linecap="round" stroke-linejoin="round"';
    return `<symbol id="${name}" viewBox="0 0 24 24" ${style}>${shapes.replace(/\s*\n\s*/g, "")}</symbol>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg">\n${(await Promise.all(symbols)).join("\n")}\n</svg>\n`;
}

/** Return the packages whose files are in the modules, and the icons'. */
function used(metafile) {
  const inputs = Object.keys(metafile.inputs).map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]);
  return [...new Set(["lucide-static", ...inputs.filter(Boolean)])].sort();
}

/** Return the licence of each package; fail for one without. */
async function licences(list) {
  const texts = list.map(async (name) => {
    const folder = join(packages, name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
    if (!file) throw new Error(`${name} has no licence file.`);
    return `${name} ${version} (${license})\n\n${(await readFile(join(folder, file), "utf8")).trim()}\n`;
  });
  return (await Promise.all(texts)).join(`\n${"-".repeat(80)}\n\n`);
}
