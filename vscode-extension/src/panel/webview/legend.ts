/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
/**
 * The legend: a bar of buttons, one below the other, that the mouse points into and the keyboard walks through.
 *
 * Enter shows a part in the tree; the menu key and Shift+F10 open its menu, which is the editor's.
 */
import { make, setAttribute, setChildren, setStyle, setText } from "./patch";

export interface Entry {
  readonly key: string;
  readonly title: string;
  readonly tokens: string;
  readonly share: string;
  readonly colour?: string;
  /** What the editor's menu is about; only what leads to the tree has one. */
  readonly menu?: string;
  readonly tooltip: string;
  readonly spoken: string;
}

export interface LegendEvents {
  onOpen(part: string): void;
  /** The mouse or the keyboard is on an entry, or on none. */
  onPoint(key: string | undefined): void;
}

export interface LegendView {
  readonly element: HTMLElement;
  show(entries: readonly Entry[]): void;
  /** The mouse is on a part of the bar. */
  point(key: string | undefined): void;
}

export function legendView(events: LegendEvents): LegendView {
  const element = make("ul", "legend");
  element.setAttribute("role", "toolbar");
  element.setAttribute("aria-orientation", "vertical");
  element.setAttribute("aria-label", "What the window holds");
  let at: string | undefined;

  const items = () => [...element.children] as HTMLElement[];
  const keyOf = (target: EventTarget | null) => (target as HTMLElement | null)?.closest<HTMLElement>("li")?.dataset.key;
  const handle = (item: HTMLElement | undefined) => item?.firstElementChild as HTMLElement | null | undefined;

  function rove(key: string | undefined): void {
    at = key;
    for (const item of items()) {
      const entry = handle(item);
      if (entry) setAttribute(entry, "tabindex", item.dataset.key === at ? "0" : "-1");
    }
  }

  function pressed(event: KeyboardEvent): void {
    const all = items();
    const index = all.findIndex((item) => item.dataset.key === keyOf(event.target));
    const to = targetOf(event.key, index, all.length);
    if (to === undefined) return;
    event.preventDefault();
    rove(all[to]?.dataset.key);
    handle(all[to])?.focus();
  }

  element.addEventListener("keydown", pressed);
  element.addEventListener("mouseover", (event) => events.onPoint(keyOf(event.target)));
  element.addEventListener("mouseleave", () => events.onPoint(undefined));
  element.addEventListener("focusin", (event) => {
    rove(keyOf(event.target));
    events.onPoint(at);
  });
  element.addEventListener("focusout", () => events.onPoint(undefined));
  element.addEventListener("click", (event) => {
    const entry = (event.target as HTMLElement).closest<HTMLElement>(".entry");
    const key = keyOf(event.target);
    if (key !== undefined && entry?.dataset.opens) events.onOpen(key);
  });

  return {
    element,
    show(entries) {
      setChildren(element, entries, ({ key }) => key, createEntry, updateEntry);
      rove(entries.some(({ key }) => key === at) ? at : entries[0]?.key);
    },
    point(key) {
      for (const item of items()) item.classList.toggle("pointed", key !== undefined && item.dataset.key === key);
    },
  };
}

function createEntry({ key, menu }: Entry): HTMLLIElement {
  const swatch = make("span", `swatch ${key}`);
  swatch.setAttribute("aria-hidden", "true");
  const entry = make("button", "entry", swatch, make("span", "title"), make("span", "tokens"), make("span", "share"));
  entry.type = "button";
  if (menu === undefined) entry.setAttribute("aria-disabled", "true");
  else {
    entry.dataset.opens = "true";
    entry.dataset.vscodeContext = menu;
  }
  const item = make("li", "", entry);
  item.setAttribute("role", "none");
  return item;
}

function updateEntry(item: HTMLLIElement, entry: Entry): void {
  const handle = item.firstElementChild;
  const [swatch, title, tokens, share] = [...(handle?.children ?? [])] as HTMLElement[];
  if (!handle || !swatch || !title || !tokens || !share) return;
  setAttribute(handle, "aria-label", entry.menu === undefined ? entry.spoken : `${entry.spoken}. Show in the tree`);
  setAttribute(handle, "title", entry.tooltip);
  if (entry.colour) setStyle(swatch, "--colour", entry.colour);
  setText(title, entry.title);
  setText(tokens, entry.tokens);
  setText(share, entry.share);
}

/** Where a key leads from an entry; undefined: nowhere. */
function targetOf(key: string, index: number, length: number): number | undefined {
  switch (key) {
    case "ArrowDown":
    case "ArrowRight":
      return (index + 1) % length;
    case "ArrowUp":
    case "ArrowLeft":
      return (index - 1 + length) % length;
    case "Home":
      return 0;
    case "End":
      return length - 1;
    default:
      return undefined;
  }
}
