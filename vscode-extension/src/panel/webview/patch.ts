/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
/** Changes to a page that touch only what is different, so that nothing flickers and focus stays where it is. */

/** An element with a class, and children. */
export function make<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  className: string,
  ...children: (Node | string)[]
): HTMLElementTagNameMap[K] {
  const made = document.createElement(tag);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** null takes the attribute away. */
export function setAttribute(element: Element, name: string, value: string | null): void {
  if (element.getAttribute(name) === value) return;
  if (value === null) element.removeAttribute(name);
  else element.setAttribute(name, value);
}

export function setHidden(element: Element, hidden: boolean): void {
  setAttribute(element, "hidden", hidden ? "" : null);
}

export function setStyle(element: HTMLElement, name: string, value: string): void {
  if (element.style.getPropertyValue(name) !== value) element.style.setProperty(name, value);
}

/** The children of a parent are those of `items`, in their order; an item's element stays while its key does. */
export function setChildren<T, E extends HTMLElement>(
  parent: Element,
  items: readonly T[],
  keyOf: (item: T) => string,
  create: (item: T) => E,
  update: (element: E, item: T) => void,
): void {
  const before = new Map<string, E>();
  for (const child of [...parent.children] as E[]) before.set(child.dataset.key ?? "", child);
  items.forEach((item, index) => {
    const key = keyOf(item);
    const element = before.get(key) ?? create(item);
    before.delete(key);
    setAttribute(element, "data-key", key);
    update(element, item);
    const there = parent.children[index] ?? null;
    if (there !== element) parent.insertBefore(element, there);
  });
  for (const gone of before.values()) gone.remove();
}
