/**
 * How quick the panel is beside a bare web view: `node test/bench/panel.ts FILE ROUNDS EDITS` writes milliseconds.
 *
 * 1. Each round opens a window for each lane, in turns: `bare` is the least web view that shows a figure, `panel` is
 *    ours, `many` is ours with 5,000 rows.
 * 2. `first` is the time from the key that runs the view's command until its first figure is painted, `edits` are the
 *    times from a key in the editor until the view shows another figure.
 * 3. `activation` is how long the host took to read and activate our extension and VS Code's own for Markdown.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { connect, Workbench } from "../e2e/harness/workbench.ts";
import { copyExample, EXTENSION, type Tools, type World } from "../e2e/harness/world.ts";
import { start } from "../e2e/setup.ts";
import { timeEdits, timeFirst, watch } from "./stopwatch.ts";

const CACHE = process.env.NEXUS_E2E_CACHE ?? path.join(EXTENSION, ".e2e");
const BARE = path.join(EXTENSION, "test/bench/bare");
const MANY = path.join(EXTENSION, "test/e2e/many-rows.mjs");
const PANEL = "Nexus: Open Context Panel";
/** The command that opens each lane's view. */
const LANES = { bare: "Bare: Open View", panel: PANEL, many: PANEL } as const;

type Lane = keyof typeof LANES;

interface Times {
  readonly first: number[];
  readonly edits: number[];
}

const OURS = "nexus.nexus-context";
const MARKDOWN = "vscode.markdown-language-features";

const [file = "panel.json", rounds = "5", edits = "10"] = process.argv.slice(2);
const tools = JSON.parse(readFileSync(path.join(CACHE, "tools.json"), "utf8")) as Tools;
const { world, close } = await start(tools, path.join(CACHE, "failure", "bench"));
const activation = { ours: [] as number[], markdown: [] as number[] };
let isKept = true;
try {
  const measured: Record<Lane, Times> = {
    bare: { first: [], edits: [] },
    panel: { first: [], edits: [] },
    many: { first: [], edits: [] },
  };
  await measure(world, "bare", -1, { first: [], edits: [] }); // the browser keeps what the first web view loads
  activation.ours.pop();
  activation.markdown.pop();
  for (let round = 0; round < Number(rounds); round++) {
    for (const lane of ["bare", "panel", "many"] as const) await measure(world, lane, round, measured[lane]);
  }
  writeFileSync(file, JSON.stringify({ ...measured, activation }));
  isKept = false;
} finally {
  await close(isKept);
}

async function measure(world: World, lane: Lane, round: number, times: Times): Promise<void> {
  const folder = path.join(copyExample(world, `${lane}-${round}`), "backend/auth-service");
  if (lane === "many") {
    mkdirSync(path.join(folder, ".vscode"));
    writeFileSync(path.join(folder, ".vscode/settings.json"), JSON.stringify({ "nexus.server.path": MANY }));
  }
  const bench = await Workbench.open(await connect(world), world, {
    workspace: folder,
    file: path.join(folder, ".nexus3/NEXUS.md"),
    payload: [["extensionDevelopmentPath", `vscode-remote://127.0.0.1:${world.port}${BARE}`]],
    prepare: watch,
  });
  await bench.ready();
  await bench.command(LANES[lane]);
  const view = bench.webview();
  await view.locator(".window .used").waitFor();
  times.first.push(await timeFirst(bench, view));
  if (lane === "bare") {
    const took = JSON.parse((await view.locator("body").getAttribute("data-activation")) ?? "{}");
    activation.ours.push(took[OURS]);
    activation.markdown.push(took[MARKDOWN]);
  }
  await bench.cursorTo("end");
  times.edits.push(...(await timeEdits(bench, view, Number(edits))));
  await bench.close();
}
