/// <reference lib="dom" />
/// <reference lib="dom.iterable" />
/** The table of who reads which file. The signs of its cells have words for a mouse and for a screen reader. */
import { type ReadersRow, type ReadersTable, SIGNS } from "../readers";
import type { PageEvents } from "./action";
import { make, setAttribute, setChildren, setHidden, setText } from "./patch";

export interface ReadersView {
  readonly element: HTMLElement;
  show(table: ReadersTable | undefined): void;
}

export function readersView(events: PageEvents): ReadersView {
  const head = make("tr", "");
  const body = make("tbody", "");
  const table = make("table", "readers", make("caption", "", "Who reads what"), make("thead", "", head), body);
  const signs = Object.values(SIGNS).map(({ sign, says }) => `${sign} ${says}`);
  const element = make("section", "readers-part", table, make("p", "readers-signs", signs.join(" · ")));

  body.addEventListener("click", (event) => {
    const uri = (event.target as HTMLElement).closest<HTMLElement>("button[data-uri]")?.dataset.uri;
    if (uri) events.send({ type: "open", uri, line: 0 });
  });

  function paintRow(row: HTMLElement, { uri, name, directory, tooltip, cells }: ReadersRow, current: string): void {
    const file = row.firstElementChild?.firstElementChild as HTMLElement | null;
    const [title, place] = [...(file?.children ?? [])] as HTMLElement[];
    if (!file || !title || !place) return;
    setAttribute(file, "data-uri", uri);
    setAttribute(file, "title", tooltip);
    setText(title, name);
    setText(place, directory);
    const others = [...row.children].slice(1) as HTMLElement[];
    cells.forEach((cell, index) => {
      const element = others[index] ?? row.appendChild(make("td", ""));
      setAttribute(element, "class", `${cell.use}${cell.column === current ? " current" : ""}`);
      setAttribute(element, "title", cell.tooltip);
      setAttribute(element, "aria-label", cell.tooltip);
      setText(element, cell.sign);
    });
    for (const gone of others.slice(cells.length)) gone.remove();
  }

  return {
    element,
    show(shown) {
      setHidden(element, shown === undefined || shown.rows.length === 0);
      if (!shown) return;
      const columns = [{ name: "", title: "File", tooltip: "", current: false }, ...shown.columns];
      setChildren(
        head,
        columns,
        ({ name }) => name,
        () => {
          const cell = make("th", "", make("span", ""));
          cell.scope = "col";
          return cell;
        },
        (cell, { title, tooltip, current }) => {
          setAttribute(cell, "class", current ? "current" : "");
          setAttribute(cell, "title", tooltip);
          if (cell.firstElementChild) setText(cell.firstElementChild, title);
        },
      );
      const current = shown.columns.find((column) => column.current)?.name ?? "";
      setChildren(
        body,
        shown.rows,
        ({ uri }) => uri,
        () => {
          const file = make("button", "reader-file", make("span", "title"), make("span", "directory"));
          file.type = "button";
          const cell = make("th", "", file);
          cell.scope = "row";
          return make("tr", "", cell);
        },
        (element, row) => paintRow(element, row, current),
      );
    },
  };
}
