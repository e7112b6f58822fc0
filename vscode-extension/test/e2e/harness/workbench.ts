/** A page with VS Code in it, used as a person would: keys, clicks, and what can be seen. */
import { appendFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type BrowserContext, chromium, type FrameLocator, type Locator, type Page } from "playwright-core";
import { until } from "./until.ts";
import type { World } from "./world.ts";

const START_MS = 120_000; // a window takes 6 to 12 s, the first 20 s; where ten programs share each core, 50 s
const PATIENCE_MS = 20_000;
const ATTEMPTS = 3; // to choose a row of a list
const DRAGS = 4; // the editor may still be busy with its layout when the mouse goes down
const DRAGGED_MS = 300;
const FOLDERS_MS = 2_000;
const SHOW_MS = 3_000;
const GRIP = 2; // pixels from the edge of a part to what it is dragged by
const SIZE = { width: 1440, height: 900 };
const CHROMIUM_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/** A browser with one profile for all windows: what the first has loaded, the others find in its cache. */
export async function launch(world: World): Promise<BrowserContext> {
  return await chromium.launchPersistentContext(profileOf(world), {
    executablePath: world.browser,
    headless: true,
    args: [...CHROMIUM_FLAGS, "--remote-debugging-port=0"],
    viewport: SIZE,
  });
}

/** The browser that was launched, from another process. */
export async function connect(world: World): Promise<BrowserContext> {
  const [port] = readFileSync(path.join(profileOf(world), "DevToolsActivePort"), "utf8").split("\n");
  const browser = await chromium.connectOverCDP(`http://127.0.0.1:${port}`);
  const [context] = browser.contexts();
  if (!context) throw new Error("the browser has no context");
  context.setDefaultTimeout(PATIENCE_MS);
  return context;
}

function profileOf(world: World): string {
  return path.join(world.root, "browser");
}

/** The colour themes in which the panel is looked at; `kind` is the class that the workbench has in them. */
export const THEMES = {
  dark: { id: "Default Dark Modern", kind: "vs-dark" },
  light: { id: "Default Light Modern", kind: "vs" },
  "hc-dark": { id: "Default High Contrast", kind: "hc-black" },
  "hc-light": { id: "Default High Contrast Light", kind: "hc-light" },
} as const;
export type Theme = keyof typeof THEMES;

export interface Opening {
  /** Absolute path of a folder, or of a `.code-workspace` file. */
  readonly workspace: string;
  /** Absolute path of a file to open at once. */
  readonly file?: string;
  /** What to answer when VS Code asks about the folder's authors: it does where it was not told before. */
  readonly trust?: "all beside it" | "no";
  readonly size?: { width: number; height: number };
  /** More of the address's payload, as VS Code's own tests use it. */
  readonly payload?: readonly (readonly [string, string])[];
  /** Called with the page before it loads. */
  readonly prepare?: (page: Page) => Promise<void>;
}

export class Workbench {
  readonly page: Page;
  readonly world: World;

  private constructor(world: World, page: Page) {
    this.world = world;
    this.page = page;
  }

  /** Opens a window and waits until it can be used. */
  static async open(browser: BrowserContext, world: World, opening: Opening): Promise<Workbench> {
    const page = await browser.newPage();
    await page.setViewportSize(opening.size ?? SIZE);
    const bench = new Workbench(world, page);
    await opening.prepare?.(page);
    await page.goto(address(world, opening), { waitUntil: "commit", timeout: START_MS });
    await page.locator(".part.statusbar").waitFor({ timeout: START_MS });
    if (opening.trust) await bench.#answerTrust(opening.trust);
    if (opening.workspace.endsWith(".code-workspace")) await bench.#waitForFolders(opening.workspace);
    return bench;
  }

  async close(): Promise<void> {
    await this.page.close();
  }

  /** Loads the window again, as a user does: with the editors that it had, and without a file to open besides. */
  async reload(): Promise<void> {
    await this.page.evaluate(() => {
      const url = new URL(location.href);
      url.searchParams.delete("payload");
      history.replaceState(history.state, "", url);
    });
    await this.refresh();
  }

  /**
   * Loads the window again by VS Code's own command, at the same address: VS Code first writes which editors and views it
   * has. A chat takes longer: VS Code writes it when the window loses the focus, too, and when the file has it shows on
   * the disk.
   */
  async refresh(): Promise<void> {
    await this.page.evaluate(() => {
      document.hasFocus = () => false;
      dispatchEvent(new Event("blur"));
    });
    const questions = this.page.locator(".interactive-request .value .rendered-markdown");
    for (const question of await questions.allInnerTexts()) await this.#isKept(plain(question));
    const loaded = this.page.waitForEvent("load", { timeout: START_MS });
    await this.command("Developer: Reload Window");
    await loaded;
    await this.page.locator(".part.statusbar").waitFor({ timeout: START_MS });
  }

  /** Waits until a chat on the disk has a question. */
  async #isKept(question: string): Promise<void> {
    const folder = path.join(this.world.root, "data/User/workspaceStorage");
    const isChat = (name: string) => path.basename(path.dirname(name)) === "chatSessions";
    const words = JSON.stringify(question.replace(/^@\w+ /, "")).slice(1, -1);
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await this.page.waitForTimeout(100)) {
      const chats = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(isChat);
      if (chats.some((name) => readFileSync(path.join(folder, name), "utf8").includes(words))) return;
    }
    throw new Error(`VS Code has not written the chat's question: ${question}`);
  }

  /** A picture for people: in the logs, which are kept after a failure. */
  async screenshot(name: string, folder = path.join(this.world.logs, "screenshots")): Promise<string> {
    mkdirSync(folder, { recursive: true });
    const file = path.join(folder, `${name}.png`);
    await this.page.screenshot({ path: file });
    return file;
  }

  /** A picture of one part of the page, such as `.part.sidebar`. */
  async photograph(part: Locator | string, name: string, folder = path.join(this.world.logs, "screenshots")) {
    mkdirSync(folder, { recursive: true });
    const file = path.join(folder, `${name}.png`);
    await (typeof part === "string" ? this.page.locator(part).first() : part).screenshot({ path: file });
    return file;
  }

  /** Loads the window again in a colour theme, as windows that are opened later are. */
  async dress(theme: Theme): Promise<void> {
    const { id, kind } = THEMES[theme];
    this.#setUp({ "window.autoDetectColorScheme": false, "workbench.colorTheme": id });
    await this.page.reload();
    await this.page.locator(`.monaco-workbench.${kind}`).waitFor({ timeout: START_MS });
    await this.ready();
  }

  /** Windows that are opened from now on are as dark as their page is again. */
  undress(): void {
    this.#setUp({ "window.autoDetectColorScheme": true, "workbench.colorTheme": undefined });
  }

  /** The editor's tools that `@nexus` offers in every message, for windows that are loaded from now on. */
  offerTools(names: readonly string[]): void {
    this.#setUp({ "nexus.chat.tools": names });
  }

  /** Changes the user's settings, for windows that are loaded from now on. */
  #setUp(change: Record<string, unknown>): void {
    const file = path.join(this.world.root, "data/User/settings.json");
    const settings = JSON.parse(readFileSync(file, "utf8")) as object;
    writeFileSync(file, JSON.stringify({ ...settings, ...change }, null, 2));
  }

  /** Code lenses of the active editor, by their words. */
  lens(text: string | RegExp): Locator {
    return this.page.locator(".part.editor .editor-group-container.active .codelens-decoration a", { hasText: text });
  }

  /** Entries of the menu that is open. */
  menu(): Locator {
    return this.page.locator(".monaco-menu .action-item:not(.disabled) .action-label:not(.separator)");
  }

  /** Runs a command of the palette by the words that stand there. */
  async command(title: string): Promise<void> {
    await this.#pick("F1", `>${title}`, title);
  }

  /** Opens a file of the workspace by its name. */
  async openFile(name: string, line?: number): Promise<void> {
    await this.#pick("Control+P", name, path.basename(name));
    await this.page.locator(".part.editor .tab.active", { hasText: path.basename(name) }).waitFor();
    if (line !== undefined) {
      await this.page.keyboard.press("Control+G");
      await this.#quickInput().fill(`:${line}`);
      await this.page.keyboard.press("Enter");
    }
  }

  /** Types at the cursor, into whatever has the focus. */
  async type(text: string): Promise<void> {
    await this.page.keyboard.type(text, { delay: 10 });
  }

  /** Gives the editor the focus and puts the cursor at its very beginning or end. */
  async cursorTo(place: "start" | "end"): Promise<void> {
    await this.page.locator(".part.editor .editor-group-container.active .view-lines").first().click();
    await this.page.keyboard.press(place === "start" ? "Control+Home" : "Control+End");
  }

  /** An answer in the quick input of this title: what is asked for is typed and accepted; none: what stands there. */
  async answer(title: string, text?: string): Promise<void> {
    const question = this.page.locator(".quick-input-widget .quick-input-title", { hasText: title });
    await question.waitFor();
    if (text !== undefined) await this.#quickInput().fill(text);
    await this.page.keyboard.press("Enter");
    await question.waitFor({ state: "hidden" });
  }

  /** Chooses a row of the quick pick that is open, by what it begins with. */
  async choose(text: string): Promise<void> {
    await this.picks(new RegExp(`^\\s*${text}`))
      .first()
      .click();
    await this.#quickInput().waitFor({ state: "hidden" });
  }

  /** Waits for a modal dialog with these words, presses a button of it, and returns what stands there. */
  async dialog(words: string, button: string): Promise<string> {
    const dialog = this.page.locator(".monaco-dialog-box", { hasText: words });
    await dialog.waitFor();
    const text = await dialog.locator(".dialog-message-container").innerText();
    await dialog.getByRole("button", { name: button, exact: true }).click();
    await dialog.waitFor({ state: "detached" });
    return text;
  }

  /** Rows of the quick pick that is open. */
  picks(text?: string | RegExp): Locator {
    return this.page.locator(".quick-input-list .monaco-list-row", text === undefined ? {} : { hasText: text });
  }

  activeEditor(): Locator {
    return this.page.locator(".part.editor .editor-group-container.active .editor-instance");
  }

  /** Answers the dialog that asks where to save a file. */
  async saveAs(file: string): Promise<void> {
    const input = this.#quickInput();
    await input.waitFor();
    // the dialog proposes a path and lists its folder: it would join an answer that comes earlier to that path
    await until(() => input.inputValue(), path.isAbsolute);
    await this.picks().first().waitFor();
    await input.fill(file);
    await this.page.keyboard.press("Enter");
    await input.waitFor({ state: "hidden" });
  }

  squiggles(kind: "error" | "warning" | "info" = "error"): Locator {
    return this.page.locator(`.part.editor .squiggly-${kind}`);
  }

  /** Rows of the problems view. */
  async problems(text: string): Promise<Locator> {
    if (!(await this.page.locator(".markers-panel").isVisible())) await this.page.locator("#status\\.problems").click();
    return this.page.locator(".markers-panel .monaco-list-row", { hasText: text });
  }

  /** Waits for a notification with these words, and clears all: everything that stands on it. */
  async told(text: string): Promise<string> {
    const said = await (await this.#notification(text)).innerText();
    await this.command("Notifications: Clear All Notifications");
    return said;
  }

  /** Waits for a notification with these words, and clears all: its message, and the titles of its buttons. */
  async notice(text: string): Promise<{ text: string; buttons: string[] }> {
    const item = await this.#notification(text);
    const notice = {
      text: plain(await item.locator(".notification-list-item-message").innerText()),
      buttons: await item.locator(".notification-list-item-buttons-container .monaco-button").allInnerTexts(),
    };
    await this.command("Notifications: Clear All Notifications");
    return notice;
  }

  /** Waits for a notification with these words, and presses a button of it. */
  async press(text: string, button: string): Promise<void> {
    const item = await this.#notification(text);
    await item.locator(".monaco-button", { hasText: button }).first().click();
    await item.waitFor({ state: "detached" });
  }

  /**
   * Notifications are not always popped up in a browser without a screen: the center has them all. It closes when something
   * else takes the focus, such as an output channel that a command shows: then it is opened again.
   */
  async #notification(text: string): Promise<Locator> {
    const item = this.page.locator(".notifications-center .notification-list-item", { hasText: text }).first();
    for (const deadline = Date.now() + PATIENCE_MS; ; ) {
      await this.command("Notifications: Show Notifications");
      try {
        await item.waitFor({ timeout: SHOW_MS });
        return item;
      } catch (error) {
        if (Date.now() > deadline) throw error;
      }
    }
  }

  /** The extension's own item in the status bar. */
  nexusItem(): Locator {
    return this.page.locator('.part.statusbar .statusbar-item[id$="nexus.status"] a');
  }

  /** Waits until the extension is active. */
  async active(): Promise<void> {
    await this.nexusItem().waitFor({ timeout: START_MS });
  }

  /** What stands in that item; the icon is not text. */
  async statusText(): Promise<string> {
    return plain(await this.nexusItem().innerText());
  }

  /** Waits until the extension has figures, and says which: `Nexus: 618 of 1,043,576 tokens, 0.1 %`. */
  async ready(): Promise<string> {
    const item = this.page.locator('.part.statusbar .statusbar-item[id$="nexus.status"] a[aria-label*=" tokens, "]');
    await item.waitFor({ timeout: START_MS });
    return (await item.getAttribute("aria-label")) ?? "";
  }

  /** Opens the panel, and waits for the figures on its web page, or for the notice that stands there instead. */
  async openPanel(what: "figures" | "notice" = "figures"): Promise<FrameLocator> {
    await this.command("Nexus: Open Context Panel");
    const panel = this.webview();
    await panel.locator(what === "figures" ? ".window .used" : ".notice .notice-title").waitFor();
    return panel;
  }

  /** What shows of an output channel, at its beginning or its end. Without spaces: it wraps its lines. */
  async output(place: "start" | "end"): Promise<string> {
    const editor = this.page.locator(".part.panel .output-view .monaco-editor").first();
    await editor.click();
    await this.page.keyboard.press(place === "start" ? "Control+Home" : "Control+End");
    return withoutSpaces(await editor.locator(".view-lines").innerText());
  }

  /** Makes the side bar as wide as this, in pixels. */
  async widenSideBar(width: number): Promise<void> {
    for (let again = 0; again < DRAGS; again++) {
      const { x, right, middle } = await this.#box(".part.sidebar");
      if (Math.abs(right - x - width) <= 1) return;
      await this.#drag([right + GRIP, middle], [x + width + GRIP, middle]);
      await this.page.waitForTimeout(DRAGGED_MS);
    }
  }

  /** Makes the chat view as wide as this, in pixels. */
  async widenChat(width: number): Promise<void> {
    const { x, right, middle } = await this.#box(".part.auxiliarybar");
    await this.#drag([x - GRIP, middle], [right - width - GRIP, middle]);
  }

  /** Makes a view of the side bar as high as this, in pixels, if another is unfolded below. */
  async heighten(title: string, height: number): Promise<void> {
    const box = await this.view(title).boundingBox();
    if (!box) throw new Error(`there is no view ${title}`);
    const middle = box.x + box.width / 2;
    await this.#drag([middle, box.y + box.height], [middle, box.y + height]);
  }

  async #box(part: string): Promise<{ x: number; right: number; middle: number }> {
    const box = await this.page.locator(part).boundingBox();
    if (!box) throw new Error(`there is no ${part}`);
    return { x: box.x, right: box.x + box.width, middle: box.y + box.height / 2 };
  }

  async #drag(from: readonly [number, number], to: readonly [number, number]): Promise<void> {
    await this.page.mouse.move(...from);
    await this.page.mouse.down();
    await this.page.mouse.move(...to, { steps: 5 });
    await this.page.mouse.up();
  }

  /** A view of the side bar by its title. */
  view(title: string): Locator {
    return this.page.locator(".part.sidebar .pane", {
      has: this.page.locator(".pane-header", { hasText: title }),
    });
  }

  /** Shows these views of the panel and folds the others. */
  async unfold(...titles: string[]): Promise<void> {
    for (const header of await this.page.locator(".part.sidebar .pane-header").all()) {
      const title = (await header.textContent()) ?? "";
      const wanted = titles.some((one) => title.includes(one));
      const folded = (await header.getAttribute("aria-expanded")) === "false";
      if (wanted === folded) await header.locator("h3, .title").first().click();
    }
    await this.page.mouse.move(0, 0); // else the hover of the row that is below the pointer then covers others
  }

  /** What a screen reader says of the rows that a view shows, from its first to its last. */
  async rows(view: string): Promise<string[]> {
    const labels = await this.view(view)
      .locator(".monaco-list-row")
      .evaluateAll((rows) =>
        rows
          .map((row) => ({ at: Number(row.getAttribute("data-index")), label: row.getAttribute("aria-label") ?? "" }))
          .sort((one, other) => one.at - other.at)
          .map(({ label }) => label),
      );
    return labels;
  }

  row(view: string, text: string | RegExp): Locator {
    return this.view(view).locator(".monaco-list-row", { hasText: text });
  }

  /** What is inside the webview that is shown. */
  webview(): FrameLocator {
    return this.page.frameLocator("iframe.webview.ready").frameLocator("iframe#active-frame");
  }

  /** Opens the chat view with the test model picked: VS Code looks for models when a first question is asked. */
  async openChat(model = "Parrot"): Promise<void> {
    await this.command("Chat: Open Chat");
    await this.#say("@parrot hello");
    await this.page.locator(".interactive-input-part", { hasText: model }).waitFor({ timeout: START_MS });
  }

  /** Begins another conversation in the chat view. */
  async newChat(): Promise<void> {
    await this.page.locator(".part.auxiliarybar .title-actions .codicon-plus").first().click();
    await this.page.locator(".interactive-response").first().waitFor({ state: "detached" });
  }

  /** Asks @nexus in the chat view, as a person would. The answer is `response(…)`. */
  async ask(text: string): Promise<void> {
    const input = this.page.locator(".interactive-input-part .monaco-editor .view-lines").first();
    const isSticky = (await input.innerText()).includes("@nexus");
    await this.#say(isSticky ? text : `@nexus ${text}`);
  }

  response(text: string | RegExp): Locator {
    return this.page.locator(".interactive-response", { hasText: text });
  }

  /** The answer in the chat whose question whether a tool may be called has these words, which no earlier one has. */
  async toolQuestion(words: string): Promise<Locator> {
    const answer = this.response(words).last();
    await answer.getByRole("button", { name: "Don't Allow" }).last().waitFor();
    return answer;
  }

  /** Answers that question, and returns what stands there. */
  async answerTool(words: string, button: string): Promise<string> {
    const answer = await this.toolQuestion(words);
    const text = await answer.innerText();
    await answer.getByRole("button", { name: button, exact: true }).last().click();
    return text;
  }

  async #say(text: string): Promise<void> {
    await this.page.locator(".interactive-input-part .monaco-editor").first().click();
    await this.page.keyboard.insertText(text);
    await this.page.keyboard.press("Escape");
    await this.page.keyboard.press("Enter");
  }

  /**
   * VS Code in a browser opens a workspace that it does not know with no folders, and takes those of the workspace's file
   * when it has read it. A file that is there before the workspace is does not count (`WorkspaceService` in
   * `updateWorkspaceAndInitializeConfiguration` takes the state of the file, and not its folders): about one window of ten
   * stays empty. A file that changes later counts.
   */
  async #waitForFolders(file: string): Promise<void> {
    const folder = this.page.locator(".explorer-folders-view .monaco-list-row").first();
    for (const deadline = Date.now() + START_MS; !(await appears(folder, FOLDERS_MS)); ) {
      if (Date.now() > deadline) throw new Error(`VS Code found no folders in ${file}`);
      appendFileSync(file, "\n");
    }
  }

  async #answerTrust(answer: "all beside it" | "no"): Promise<void> {
    const dialog = this.page.locator(".monaco-dialog-box", { hasText: /trust/i });
    await dialog.waitFor({ timeout: START_MS });
    if (answer === "no") {
      await dialog.getByRole("button", { name: /^No/ }).click();
    } else {
      await dialog.getByRole("checkbox").click();
      await dialog.getByRole("button", { name: /^Yes/ }).click();
    }
    await dialog.waitFor({ state: "detached" });
    if (answer === "all beside it") await until(() => this.page.evaluate(isTrustKept), Boolean);
  }

  /** Chooses a row in the list that a key opens; a busy editor may close the list once, or not hear the key. */
  async #pick(key: string, typed: string, row: string): Promise<void> {
    const input = this.#quickInput();
    for (let attempt = 1; ; attempt++) {
      const timeout = (attempt * PATIENCE_MS) / 2;
      await this.page.keyboard.press(key);
      try {
        await input.fill(typed, { timeout });
        // what stands first may still be of another search
        const first = this.page.locator(".quick-input-list .monaco-list-row.focused", { hasText: row });
        await first.waitFor({ timeout });
        break;
      } catch (error) {
        if (attempt === ATTEMPTS) throw error;
        await this.page.keyboard.press("Escape");
      }
    }
    await this.page.keyboard.press("Enter");
  }

  #quickInput(): Locator {
    return this.page.locator(".quick-input-widget input.input");
  }
}

/** The editor and its widgets show spaces as other characters. */
export function plain(text: string): string {
  return text.replaceAll(/\s+/g, " ").trim();
}

export function withoutSpaces(text: string): string {
  return text.replaceAll(/\s+/g, "");
}

/** Whether an element shows within some milliseconds. */
export async function appears(locator: Locator, timeout: number): Promise<boolean> {
  return locator.waitFor({ timeout }).then(
    () => true,
    () => false,
  );
}

/**
 * Whether VS Code has written which folders are trusted: it does so a moment after the answer, and a window that is
 * opened before asks again. To be run in the page.
 */
async function isTrustKept(): Promise<boolean> {
  const request = <T>(wanted: IDBRequest<T>) =>
    new Promise<T>((resolve, reject) => {
      wanted.onsuccess = () => resolve(wanted.result);
      wanted.onerror = () => reject(wanted.error);
    });
  const names = (await indexedDB.databases()).map(({ name }) => name);
  if (!names.includes("vscode-web-state-db-global-shared")) return false;
  const database = await request(indexedDB.open("vscode-web-state-db-global-shared"));
  try {
    const items = database.transaction("ItemTable").objectStore("ItemTable");
    return String(await request(items.get("content.trust.model.key"))).includes('"trusted":true');
  } finally {
    database.close();
  }
}

function address(world: World, opening: Opening): string {
  const origin = `http://127.0.0.1:${world.port}`;
  const query = new URLSearchParams();
  query.set(opening.workspace.endsWith(".code-workspace") ? "workspace" : "folder", opening.workspace);
  const payload = [...(opening.payload ?? [])];
  if (opening.file !== undefined) payload.push(["openFile", `vscode-remote://127.0.0.1:${world.port}${opening.file}`]);
  if (payload.length > 0) query.set("payload", JSON.stringify(payload));
  return `${origin}/?${query.toString()}`;
}
