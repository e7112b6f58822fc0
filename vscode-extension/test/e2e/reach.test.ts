/** What a keyboard reaches, what a narrow side bar keeps, and what the walkthrough teaches. */
import path from "node:path";
import type { FrameLocator } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { Daemon, uriOf } from "./harness/daemon.ts";
import { photographFailure, prepared, until, window, world } from "./harness/each.ts";
import type { Workbench } from "./harness/workbench.ts";
import { copyExample } from "./harness/world.ts";

let folder: string;
let bench: Workbench;
let other: Daemon;
let panel: FrameLocator;

beforeAll(
  prepared(async () => {
    folder = path.join(copyExample(world(), "reach"), "backend/auth-service");
    other = await Daemon.start(world(), folder);
    bench = await window({ workspace: folder, file: path.join(folder, ".nexus3/NEXUS.md") });
    await bench.ready();
    panel = await bench.openPanel();
    await bench.widenSideBar(340);
    await bench.unfold("Context Window", "What Costs What");
  }),
);
afterAll(async () => {
  await other?.stop();
  await bench?.close();
});
beforeEach(photographFailure);

test("a part of the legend has its menu by key, whose entries work", async () => {
  await panel.locator('.legend .entry[tabindex="0"]').focus();
  await bench.page.keyboard.press("ArrowDown"); // skills; its largest row is that of a skill
  expect(await openMenu()).toEqual(["Show in What Costs What", "Show System Prompt", "Show Next Request"]);
  await bench.page.keyboard.press("ArrowDown");
  await bench.page.keyboard.press("Enter");
  await bench.page.locator('.part.sidebar .monaco-list-row.focused[aria-label^="rotate-key, "]').waitFor();
});

test("a row has its menu by key; Enter goes to its source", async () => {
  await focusRow("Soul");
  expect(await openMenu()).toEqual(["Go to Source", "Show in System Prompt"]);
  await bench.page.keyboard.press("ArrowDown");
  await bench.page.keyboard.press("ArrowDown");
  await bench.page.keyboard.press("Enter");
  await bench.page.locator(".part.editor .tab.active", { hasText: "system prompt" }).waitFor();
  const { text, fragments } = await other.request("nexus/context/preview", { workspaceFolder: uriOf(folder) });
  const { end } = fragments.find((one) => one.source?.uri.endsWith("/SOUL.md") && one.verbatim)?.range ?? expect.fail();
  const before = text
    .split("\n")
    .slice(0, end.line + 1)
    .join("\n");
  const selected = before.slice(before.lastIndexOf("## Soul"), before.length); // its heading is in the prompt alone
  expect(end.character).toBe(before.length - before.lastIndexOf("\n") - 1);
  await until(
    () => bench.page.locator("#status\\.editor\\.selection").innerText(),
    (now) => now === `Ln ${end.line + 1}, Col ${end.character + 1} (${selected.length} selected)`,
  );
  await focusRow("Soul");
  await bench.page.keyboard.press("Enter");
  await bench.page.locator(".part.editor .tab.active", { hasText: "SOUL.md" }).waitFor();
});

test("the command of an instruction file has an icon of our own", async () => {
  await bench.openFile(".nexus3/NEXUS.md");
  const icon = bench.page
    .locator(
      '.part.editor .editor-actions .action-label[aria-label^="Nexus: Show System Prompt"], .part.editor .editor-actions .action-label[aria-label^="Show System Prompt"]',
    )
    .first();
  await icon.waitFor();
  const image = await icon.evaluate(
    (element) => getComputedStyle(element).backgroundImage + getComputedStyle(element, "::before").backgroundImage,
  );
  expect(image).toMatch(/prompt-(dark|light)\.svg/);
});

test("180 pixels keep every figure, and hide none", async () => {
  await bench.widenSideBar(180);
  const side = await bench.page.locator(".part.sidebar").boundingBox();
  expect(Math.round(side?.width ?? 0)).toBe(180);
  const figures = panel.locator(".used, .of, .percent, .legend .title, .legend .tokens, .legend .share");
  await until(
    () =>
      figures.evaluateAll(
        (all) => all.map((one) => Math.ceil(one.getBoundingClientRect().right)).sort((a, b) => b - a)[0] ?? 999,
      ),
    (right) => right <= 180,
  );
  const cut = await figures.evaluateAll((all) =>
    all
      .filter((one) => one.scrollWidth > one.clientWidth && getComputedStyle(one).overflow !== "visible")
      .map((one) => one.textContent),
  );
  expect(cut).toEqual([]);
  const overlapping = await panel.locator(".legend .entry > span, .figures > span").evaluateAll((all) => {
    const boxes = all
      .filter((one) => one.textContent)
      .map((one) => ({ text: one.textContent, box: one.getBoundingClientRect() }));
    return boxes.flatMap((one, at) =>
      boxes
        .slice(at + 1)
        .filter(
          ({ box }) =>
            box.left < one.box.right - 1 &&
            one.box.left < box.right - 1 &&
            box.top < one.box.bottom - 1 &&
            one.box.top < box.bottom - 1,
        )
        .map(({ text }) => `${one.text} / ${text}`),
    );
  });
  expect(overlapping).toEqual([]);
  const label = bench.view("What Costs What").locator(".monaco-list-row .label-name").first();
  const [first] = await bench.rows("What Costs What");
  const tokens = /([\d,]+) tokens/.exec(first ?? "")?.[1];
  expect(
    await until(
      () => label.innerText(),
      (text) => /^[\d,]+$/.test(text),
    ),
  ).toBe(tokens);
  await bench.widenSideBar(340);
  await until(
    () => label.innerText(),
    (text) => text === "System prompt",
  );
});

test("the walkthrough begins with a picture of the panel, and its buttons work", async () => {
  await bench.command("Nexus: Open Walkthrough");
  const page = bench.page.locator(".gettingStartedContainer");
  const step = (title: string) => page.locator(".getting-started-step", { hasText: title }).first();
  await step("What your assistant reads").click();
  const picture = page.locator('img[alt^="The context panel: the window as a bar"]').first();
  await until(
    () => picture.evaluate((image) => (image as HTMLImageElement).naturalWidth),
    (width) => width === 200, // of 300 pixels, which VS Code takes for those of a screen of 1.5
  );
  await bench.page.keyboard.press("Control+B"); // the side bar goes
  await bench.view("Context Window").waitFor({ state: "hidden" });
  await step("What your assistant reads").getByRole("button", { name: "Open the panel" }).click();
  await bench.view("Context Window").waitFor();
  await step("The exact prompt").click();
  await step("The exact prompt").getByRole("button", { name: "Show the prompt" }).click();
  await bench.page.locator(".part.editor .tab.active", { hasText: "system prompt" }).waitFor();
});

/** Moves the keyboard to a row of the system prompt, from its first. */
async function focusRow(name: string): Promise<void> {
  await bench.command("Focus on What Costs What View");
  await bench.page.keyboard.press("Home");
  const focused = bench.page.locator(".part.sidebar .monaco-list-row.focused");
  for (let row = 0; row < 20; row++) {
    if ((await focused.getAttribute("aria-label"))?.startsWith(`${name}, `)) return;
    await bench.page.keyboard.press("ArrowDown");
    await bench.page.waitForTimeout(100);
  }
  throw new Error(`there is no row ${name}`);
}

/** Opens the menu of what has the focus, and says what stands there. */
async function openMenu(): Promise<string[]> {
  await bench.page.keyboard.press("Shift+F10");
  await bench.menu().first().waitFor();
  const entries = await bench.menu().allInnerTexts();
  return entries.map((one) => one.trim()).filter(Boolean);
}
