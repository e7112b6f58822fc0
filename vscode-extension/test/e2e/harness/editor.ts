/** What the active editor shows, and what a user does in it. */
import { appears, plain, type Workbench } from "./workbench.ts";

const MENU_MS = 5_000;
const MENU_TIMES = 4;

/** Where the cursor is, counted from 1, as the status bar says it, with how much is selected. */
export async function cursor(bench: Workbench): Promise<string> {
  const item = bench.page.locator("#status\\.editor\\.selection");
  return plain(await item.innerText());
}

/** The lines that the active editor shows. */
export async function lines(bench: Workbench): Promise<string[]> {
  const lines = bench.activeEditor().locator(".view-lines > .view-line");
  const placed = await lines.evaluateAll((all) =>
    all.map((line) => ({ top: Number.parseFloat((line as HTMLElement).style.top), text: line.textContent ?? "" })),
  );
  return placed.sort((one, other) => one.top - other.top).map(({ text }) => text.replaceAll("\u00a0", " "));
}

/** The code lenses that the active editor shows, from top to bottom. */
export async function lenses(bench: Workbench): Promise<string[]> {
  const lenses = await bench
    .activeEditor()
    .locator(".codelens-decoration")
    .evaluateAll((all) =>
      all
        .map((lens) => ({ top: lens.getBoundingClientRect().top, text: lens.textContent ?? "" }))
        .sort((one, other) => one.top - other.top)
        .map(({ text }) => text),
    );
  return lenses.map(plain);
}

/** Puts the cursor where these words begin. */
export async function cursorAt(bench: Workbench, words: string): Promise<void> {
  await bench.cursorTo("start");
  await bench.page.keyboard.press("Control+F");
  await bench.page.locator('.find-widget.visible textarea[aria-label="Find"]').fill(words);
  await bench.page.locator(".find-widget.visible .matchesCount", { hasText: /^1 of/ }).waitFor();
  await bench.page.keyboard.press("Escape"); // the words are selected
  await bench.page.locator(".find-widget.visible").waitFor({ state: "detached" });
  await bench.page.keyboard.press("ArrowLeft");
}

/** The hover of the place where the cursor is. */
export async function hover(bench: Workbench): Promise<string> {
  await bench.page.keyboard.press("Control+K");
  await bench.page.keyboard.press("Control+I");
  const hover = bench.page.locator(".monaco-hover:not(.hidden) .hover-contents:not(.html-hover-contents)").first();
  await hover.waitFor();
  const text = await hover.innerText();
  await bench.page.keyboard.press("Escape");
  return text.replaceAll("\u00a0", " ").trim();
}

/** The quick fixes where the cursor is; the one of this title is applied. */
export async function quickFix(bench: Workbench, title: string): Promise<string[]> {
  // the light bulb shows that VS Code has asked for the fixes of this place; a menu that is opened meanwhile closes,
  // and so does one where diagnostics come: then the key is pressed again
  const bulb = '[class*="codicon-gutter-lightbulb"], .lightBulbWidget';
  await bench.activeEditor().locator(bulb).filter({ visible: true }).first().waitFor();
  const rows = bench.page.locator(".action-widget .monaco-list-row.action");
  for (let open = false, times = 0; !open; times++) {
    if (times === MENU_TIMES) throw new Error(`no menu of quick fixes opens, after ${MENU_TIMES} times`);
    await bench.page.keyboard.press("Control+.");
    open = await appears(rows.first(), MENU_MS);
  }
  const titles = (await rows.allInnerTexts()).map(plain);
  await rows.filter({ hasText: title }).first().click();
  await rows.first().waitFor({ state: "detached" });
  return titles;
}

/** What the list of suggestions shows once it has this one; it is opened unless it is there. */
export async function suggestions(bench: Workbench, label: string): Promise<string[]> {
  const rows = bench.page.locator(".suggest-widget.visible .monaco-list-row");
  for (let times = 0; !(await appears(rows.filter({ hasText: label }).first(), MENU_MS)); times++) {
    if (times === MENU_TIMES) throw new Error(`${label} is not suggested, after ${MENU_TIMES} times`);
    await bench.page.keyboard.press("Control+Space");
  }
  return (await rows.locator(".label-name").allInnerTexts()).map(plain);
}
