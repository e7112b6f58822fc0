// @vitest-environment happy-dom
import { beforeEach, describe, expect, it } from "vitest";
import type { FromPage } from "../../src/panel/messages";
import { noticeOf, READING } from "../../src/panel/notice";
import { pageHtml } from "../../src/panel/page";
import { page } from "../../src/panel/webview/paint";
import { type WindowGiven, windowModel } from "../../src/panel/window";
import type { ServerInfo, UsageRow } from "../../src/protocol";
import { example, FOLDER, usageOf } from "./panel-examples";

const rows = (...tokens: number[]): UsageRow[] =>
  (["system", "tools", "history", "memory", "event"] as const).slice(0, tokens.length).map((category, index) => ({
    category,
    label: category,
    tokens: tokens[index] ?? 0,
    exact: true,
  }));

const model = (usage = example("nexus/context/usage"), more: Partial<WindowGiven> = {}) =>
  windowModel({ folder: { uri: FOLDER, name: "auth-service" }, session: "main", usage, ...more });

let root: HTMLElement;
let spoken: HTMLElement;
let sent: FromPage[];
let scales: string[];
let shown: ReturnType<typeof page>;

beforeEach(() => {
  document.body.innerHTML = "<main></main><div></div>";
  [root, spoken] = [...document.body.children] as [HTMLElement, HTMLElement];
  [sent, scales] = [[], []];
  shown = page(root, spoken, { send: (message) => sent.push(message), onScale: (scale) => scales.push(scale) });
});

const text = (selector: string) => root.querySelector(selector)?.textContent;
const legend = () => [...root.querySelectorAll<HTMLElement>(".entry")];
const texts = (selector: string) => [...root.querySelectorAll(selector)].map((one) => one.textContent);

describe("the page", () => {
  it("shows the figures and a legend of all of them", () => {
    shown.show(model());
    expect([text(".used"), text(".of"), text(".percent")]).toEqual(["618", "of 1,043,576 tokens", "0.1 %"]);
    expect(legend().map((entry) => entry.textContent)).toEqual([
      "Your instructions403< 0.1 %",
      "MCP and tools52< 0.1 %",
      "Nexus's own text95< 0.1 %",
      "History68< 0.1 %",
      "Free1,042,95899.9 %",
      "Kept for answers4,000",
    ]);
    expect(root.querySelector(".strip")?.getAttribute("aria-label")).toBe("618 tokens of 1,043,576 used, 0.1 %.");
  });

  it("changes what is there and makes nothing anew: no element goes, focus stays", () => {
    shown.show(model(usageOf(rows(10, 20, 30))));
    const before = [...root.querySelectorAll("*")];
    legend()[1]?.focus();
    shown.show(model(usageOf(rows(10, 25, 3_000))));
    expect([...root.querySelectorAll("*")].every((element, index) => element === before[index])).toBe(true);
    expect(document.activeElement).toBe(legend()[1]);
    expect(texts(".legend .tokens").slice(0, 3)).toEqual(["25", "10", "3,000"]);
  });

  it("touches nothing when nothing changed", async () => {
    const whole = () =>
      model(usageOf(rows(70_001, 20_003, 30_007, 5)), {
        config: example("nexus/config/effective"),
        layers: example("nexus/context/layers"),
        agent: "reviewer",
        compaction: { undone: false, time: "12:03" },
      });
    shown.show(whole());
    const touched: string[] = [];
    const observer = new MutationObserver((records) => {
      for (const { target, attributeName } of records)
        touched.push(`${(target as Element).className} ${attributeName}`);
    });
    observer.observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
    shown.show(whole());
    await new Promise((resolve) => setTimeout(resolve, 0));
    expect(touched).toEqual([]);
    observer.disconnect();
  });

  it("puts a new part into its place", () => {
    shown.show(model(usageOf(rows(10).concat(rows(0, 0, 30).slice(2)))));
    const history = root.querySelector('.strip [data-key="history"]');
    shown.show(model(usageOf(rows(10, 20, 30))));
    const keys = [...root.querySelectorAll<HTMLElement>(".strip > *")].map((part) => part.dataset.key);
    expect(keys.slice(0, 3)).toEqual(["tools", "nexus", "history"]);
    expect(root.querySelector('.strip [data-key="history"]')).toBe(history);
  });

  it("is walked with the arrow keys, one entry in the order of tabs; Enter shows the part", () => {
    shown.show(model());
    const press = (key: string) =>
      document.activeElement?.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true }));
    const stops = () => legend().map((entry) => entry.getAttribute("tabindex"));
    expect(stops()).toEqual(["0", "-1", "-1", "-1", "-1", "-1"]);
    legend()[0]?.focus();
    press("ArrowDown");
    expect(document.activeElement).toBe(legend()[1]);
    expect(stops()).toEqual(["-1", "0", "-1", "-1", "-1", "-1"]);
    press("End");
    press("ArrowDown");
    expect(document.activeElement).toBe(legend()[0]);
    legend()[3]?.click(); // what Enter does on a button
    legend()[4]?.click(); // free: there is nothing to show
    expect(sent).toEqual([{ type: "reveal", part: "history" }]);
  });

  it("has the roles, tooltips and menus of what it shows", () => {
    shown.show(model());
    const toolbar = root.querySelector(".legend");
    const attributes = (element: Element | null | undefined, ...names: string[]) =>
      names.map((name) => element?.getAttribute(name));
    expect(attributes(toolbar, "role", "aria-orientation", "aria-label")).toEqual([
      "toolbar",
      "vertical",
      "What the window holds",
    ]);
    expect([...(toolbar?.children ?? [])].map((item) => item.getAttribute("role"))).toEqual(Array(6).fill("none"));
    const [instructions, , , , free] = legend();
    const menu = '{"webviewSection":"part","part":"instructions","preventDefaultContextMenuItems":true}';
    const tooltip = [
      "Your instructions: 403 tokens, < 0.1 % of what is available",
      "What stands in instruction files of all layers, and in what they import",
    ].join("\n");
    expect(attributes(instructions, "aria-label", "title", "data-vscode-context", "aria-disabled")).toEqual([
      "Your instructions: 403 tokens, < 0.1 %. Show in the tree",
      tooltip,
      menu,
      null,
    ]);
    expect(attributes(root.querySelector('.strip [data-key="instructions"]'), "title", "data-vscode-context")).toEqual([
      tooltip,
      menu,
    ]);
    expect(attributes(free, "aria-label", "title", "data-vscode-context", "aria-disabled")).toEqual([
      "Free: 1,042,958 tokens, 99.9 %",
      "Free: 1,042,958 tokens, 99.9 % of what is available",
      null,
      "true",
    ]);
    expect(attributes(root.querySelector(".window"), "data-vscode-context")).toEqual(['{"webviewSection":"window"}']);
  });

  it("has a button for each MCP server in trouble, named for a screen reader, and its line", () => {
    const uri = `${FOLDER}/.nexus3/mcp.json`;
    const failed = (name: string, line = 2): ServerInfo => ({
      name,
      origin: "local",
      uri,
      range: { start: { line, character: 4 }, end: { line: line + 1, character: 4 } },
      transport: "stdio",
      state: "failed",
      hash: "h",
      error: "It ended.",
      log: "file:///log",
    });
    const shownWith = (...servers: ServerInfo[]) => shown.show(model(undefined, { servers: { servers, tokens: 0 } }));
    shownWith(failed("a"), failed("b")); // both in one line
    const buttons = () => [...root.querySelectorAll<HTMLElement>(".remark-action button")];
    expect(buttons().map((one) => [one.textContent, one.getAttribute("aria-label")])).toEqual([
      ["Show Log", "Show Log a"],
      ["Show Log", "Show Log b"],
    ]);
    for (const one of [...buttons(), ...root.querySelectorAll<HTMLElement>(".remark-text button")]) one.click();
    expect(sent).toEqual([
      { type: "act", id: "showServerLog", server: "a" },
      { type: "act", id: "showServerLog", server: "b" },
      { type: "open", uri, line: 2 },
      { type: "open", uri, line: 2 },
    ]);
    sent.length = 0;
    shownWith(failed("b", 9)); // its entry moved
    for (const one of [...buttons(), ...root.querySelectorAll<HTMLElement>(".remark-text button")]) one.click();
    expect(sent).toEqual([
      { type: "act", id: "showServerLog", server: "b" },
      { type: "open", uri, line: 9 },
    ]);
  });

  it("greys the figures of before and says so, once, until there are new ones", () => {
    const window = () => root.querySelector(".window");
    shown.show(model());
    expect([window()?.hasAttribute("data-stale"), root.querySelector<HTMLElement>(".stale")?.hidden]).toEqual([
      false,
      true,
    ]);
    const bar = root.firstElementChild;
    shown.show(model(undefined, { stale: "Starting the server" }));
    expect(root.firstElementChild).toBe(bar);
    expect([window()?.hasAttribute("data-stale"), text(".stale"), text(".used"), spoken.textContent]).toEqual([
      true,
      "Starting the server. The figures are from before.",
      "618",
      "Starting the server. The figures are from before.",
    ]);
    shown.show(model());
    expect([window()?.hasAttribute("data-stale"), spoken.textContent]).toEqual([
      false,
      "618 tokens of 1,043,576 used, 0.1 %.",
    ]);
  });

  it("has two scales; the user's choice stays", () => {
    shown.show(model());
    const element = root.querySelector(".window");
    expect(element?.getAttribute("data-scale")).toBe("used");
    expect(root.querySelector(".free")?.closest(".strip")).toBeFalsy();
    root.querySelector<HTMLElement>(".scale")?.click();
    expect([element?.getAttribute("data-scale"), scales]).toEqual(["window", ["window"]]);
    shown.show(model());
    expect(element?.getAttribute("data-scale")).toBe("window");
    expect(root.querySelector(".strip > .free")).toBeTruthy();
  });

  it("speaks of what is worth it, not of every edit", () => {
    shown.show(model(usageOf(rows(90_000))));
    expect(spoken.textContent).toContain("90,000 tokens");
    shown.show(model(usageOf(rows(90_100))));
    expect(spoken.textContent).toContain("90,000 tokens");
    shown.show(model(usageOf(rows(99_000))));
    expect(spoken.textContent).toContain("99,000 tokens");
  });

  it("says whose view it is, with a way back", () => {
    shown.show(model());
    expect(root.querySelector<HTMLElement>(".who")?.hidden).toBe(true);
    shown.show(model(undefined, { agent: "reviewer" }));
    expect(text(".who-name")).toBe("reviewer");
    root.querySelector<HTMLElement>(".who .link")?.click();
    expect(sent).toEqual([{ type: "act", id: "stopViewingAs" }]);
  });

  it("shows a notice in place of the bar, and the bar again", () => {
    shown.show(READING);
    expect(text(".notice-title")).toBe("Reading the context");
    shown.show(model());
    const bar = root.firstElementChild;
    shown.show(noticeOf("failed", "Python 3.11 was not found.", "here") ?? READING);
    expect(texts(".notice-actions button")).toEqual(["Restart", "Show Output", "Get Started"]);
    root.querySelector<HTMLElement>(".notice-actions button")?.click();
    expect(sent).toEqual([{ type: "act", id: "restart" }]);
    shown.show(model());
    expect(root.firstElementChild).toBe(bar);
  });

  it("shows text as text", () => {
    const usage = usageOf(rows(5), { model: "<img src=x onerror=alert(1)>" });
    shown.show(model(usage));
    expect(root.querySelector("img")).toBeNull();
    expect(text(".model")).toBe("<img src=x onerror=alert(1)>");
  });
});

describe("its frame", () => {
  it("allows its own style and script alone", () => {
    const html = pageHtml({
      script: "https://x/panel.js",
      style: "https://x/panel.css",
      source: "https://x",
      nonce: "n0",
    });
    expect(html).toContain(`content="default-src 'none'; style-src https://x; script-src 'nonce-n0'"`);
    expect(html).not.toMatch(/unsafe-|style="|<script>|\son\w+=/);
    expect(pageHtml({ script: "", style: "", source: "" })).not.toBe(pageHtml({ script: "", style: "", source: "" }));
  });
});
