/** What people call a layer. */

/** Titles of layers, and of the scopes of another assistant's files. */
const TITLES: Readonly<Record<string, string>> = {
  defaults: "Defaults",
  global: "Global",
  local: "This folder",
  ancestor: "Ancestor",
  managed: "Organization",
  user: "User",
  parent: "Parent",
  project: "Project",
  rule: "Rules",
  import: "Imports",
  settings: "Named by settings",
  memory: "Notes it keeps",
  skill: "Skills",
  agent: "Agents",
  nested: "Below this folder",
};

/** `ancestor:company` → `Ancestor: company`. */
export function layerTitle(name: string): string {
  const [kind, ...rest] = name.split(":");
  const known = TITLES[kind ?? ""];
  return known ? [known, ...rest].join(": ") : name;
}
