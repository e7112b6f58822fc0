/** The settings in force as a text that says of each value who set it. Pure. */
import type { EffectiveResult, Json, Provenance } from "../protocol";

export interface EffectiveText {
  readonly text: string;
  /** Line → who set the value on it, lowest layer first. */
  readonly setBy: ReadonlyMap<number, readonly Provenance[]>;
}

/** JSON with comments. `place` shows a file for people. */
export function effectiveText(effective: EffectiveResult, place: (uri: string) => string): EffectiveText {
  const lines: string[] = [];
  const setBy = new Map<number, readonly Provenance[]>();

  function put(pointer: string, key: string | undefined, value: Json, indent: string, comma: string): void {
    const head = indent + (key === undefined ? "" : `${JSON.stringify(key)}: `);
    const chain = pointer ? effective.provenance[pointer] : undefined;
    if (chain) setBy.set(lines.length, chain);
    const comment = chain ? said(chain, place) : "";
    const entries = isTree(value) ? Object.entries(value) : [];
    if (!isTree(value) || entries.length === 0) {
      lines.push(`${head}${JSON.stringify(value)}${comma}${comment}`);
      return;
    }
    const isList = Array.isArray(value);
    lines.push(`${head}${isList ? "[" : "{"}${comment}`);
    entries.forEach(([name, child], index) => {
      put(
        `${pointer}/${escaped(name)}`,
        isList ? undefined : name,
        child,
        `${indent}  `,
        index < entries.length - 1 ? "," : "",
      );
    });
    lines.push(`${indent}${isList ? "]" : "}"}${comma}`);
  }

  lines.push("// The settings in force. Go to Definition (F12) leads to the file that sets a value.");
  put("", undefined, effective.config, "", "");
  lines.push(
    "",
    "// MCP servers, in the order of the layers",
    ...effective.mcpServers.map((server) => {
      const fate = server.shadowedBy ? `, overridden by ${server.shadowedBy}` : server.enabled ? "" : ", off";
      return `//   ${server.name} (${server.type}) from ${server.origin}${fate}: ${place(server.uri)}:${server.range.start.line + 1}`;
    }),
  );
  return { text: `${lines.join("\n")}\n`, setBy };
}

function said(chain: readonly Provenance[], place: (uri: string) => string): string {
  const who = chain.filter((one) => one.wins).map((one) => at(one, place));
  const lost = chain
    .filter((one) => !one.wins && one.layer !== "built-in")
    .map((one) => one.layer + (one.ignored ? " (may not set it)" : ""));
  const parts = [...who, ...(lost.length > 0 ? [`not ${[...new Set(lost)].join(", ")}`] : [])];
  return parts.length > 0 ? `  // ${parts.join("; ")}` : "";
}

function at(one: Provenance, place: (uri: string) => string): string {
  if (one.layer === "built-in") return "default";
  return one.layer === "agent" ? "agent" : `${one.layer}: ${place(one.uri)}:${one.range.start.line + 1}`;
}

function isTree(value: Json): value is Json[] | { [key: string]: Json } {
  return typeof value === "object" && value !== null;
}

/** A key as RFC 6901 writes it. */
function escaped(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}
