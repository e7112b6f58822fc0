import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, test } from "vitest";
// @ts-expect-error: a build script without types
import { editorSchema } from "../../scripts/schemas.mjs";

test("what constrains is offered instead", () => {
  const schema = {
    type: "object",
    required: ["a"],
    additionalProperties: false,
    properties: {
      a: { enum: ["x", "y"], description: "A", default: "x" },
      type: { type: "boolean" },
      b: { anyOf: [{ const: 1 }, { type: "array", items: { $ref: "#/definitions/c" }, minItems: 1 }] },
    },
    definitions: { c: { type: "string", pattern: "^c", examples: ["c1"] } },
  };
  expect(editorSchema(schema)).toEqual({
    properties: {
      a: { description: "A", default: "x", examples: ["x", "y"] },
      type: { examples: [true, false] },
      b: { anyOf: [{ examples: [1] }, { items: { $ref: "#/definitions/c" } }] },
    },
    definitions: { c: { examples: ["c1"] } },
  });
});

const CONSTRAINTS = ["type", "required", "enum", "const", "pattern", "minimum", "maximum", "not", "minItems"];

function problems(schema: unknown, path: string): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  if (Array.isArray(schema)) return schema.flatMap((one, index) => problems(one, `${path}/${index}`));
  return Object.entries(schema).flatMap(([key, value]) => {
    const at = `${path}/${key}`;
    const isMap = ["properties", "patternProperties", "definitions"].includes(key);
    if (isMap) return Object.entries(value as object).flatMap(([name, one]) => problems(one, `${at}/${name}`));
    if (CONSTRAINTS.includes(key) || (key === "additionalProperties" && value === false)) return [at];
    return ["examples", "default", "defaultSnippets"].includes(key) ? [] : problems(value, at);
  });
}

test.each(["config", "mcp"])("of %s.schema.json every key keeps its words and none constrains", (name) => {
  const path = resolve(__dirname, "../../../context/nexus_context/config", `${name}.schema.json`);
  const original = readFileSync(path, "utf8");
  const made = JSON.stringify(editorSchema(JSON.parse(original)));
  expect(problems(JSON.parse(made), "")).toEqual([]);
  const words = (text: string) =>
    [...text.matchAll(/"description": ?"((?:[^"\\]|\\.)*)"/g)].map((found) => found[1]).sort();
  expect(words(made)).toEqual(words(original));
});
