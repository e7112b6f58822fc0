/**
 * A schema that helps and never complains.
 *
 * The daemon checks these files itself, with better words, at the exact place, also across layers. A schema that
 * complained, too, would show each mistake twice. So what constrains becomes what is offered: an `enum` becomes
 * `examples`, which the editor completes from; types, bounds and required keys go.
 */
const CONSTRAINTS = new Set([
  "type",
  "additionalProperties",
  "required",
  "minimum",
  "maximum",
  "exclusiveMinimum",
  "exclusiveMaximum",
  "minLength",
  "maxLength",
  "minItems",
  "maxItems",
  "uniqueItems",
  "pattern",
  "format",
  "minProperties",
  "maxProperties",
  "not",
  "propertyNames",
  "multipleOf",
  "dependencies",
  "if",
  "then",
  "else",
  "contains",
]);
/** Keys whose value is a map from a name to a schema. */
const MAPS = new Set(["properties", "patternProperties", "definitions", "$defs"]);

/** @param {any} schema @returns {any} */
export function editorSchema(schema) {
  if (typeof schema !== "object" || schema === null || Array.isArray(schema)) return schema;
  const made = {};
  for (const [key, value] of Object.entries(schema)) {
    if (key === "additionalProperties" && typeof value === "object") made[key] = editorSchema(value);
    else if (key === "enum" || key === "const") continue;
    else if (CONSTRAINTS.has(key)) continue;
    else if (MAPS.has(key)) made[key] = Object.fromEntries(Object.entries(value).map(([k, v]) => [k, editorSchema(v)]));
    else if (key === "items") made[key] = Array.isArray(value) ? value.map(editorSchema) : editorSchema(value);
    else if (key === "anyOf" || key === "oneOf" || key === "allOf")
      made.anyOf = [...(made.anyOf ?? []), ...value.map(editorSchema)];
    else made[key] = value;
  }
  // names in backquotes are shown as names
  if (typeof schema.description === "string" && schema.description.includes("`"))
    made.markdownDescription = schema.description;
  const offered = offers(schema);
  if (offered.length > 0) made.examples = [...new Set([...(schema.examples ?? []), ...offered])];
  return made;
}

/** Values worth offering where this schema stands. */
function offers(schema) {
  if (Array.isArray(schema.enum)) return schema.enum;
  if ("const" in schema) return [schema.const];
  return schema.type === "boolean" ? [true, false] : [];
}
