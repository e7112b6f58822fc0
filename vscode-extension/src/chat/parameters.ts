/**
 * Model parameters of the settings → options of the editor's request. No VS Code here. Rules:
 *
 * 1. The fields of the daemon's body that are parameters are sent, as far as a setting, the session, the agent or the
 *    request set them. Where nothing did, the provider's defaults hold.
 * 2. Extensions that bring models read the limit of an answer as `max_tokens`, whatever their provider calls it.
 */
import type { Json, ParameterValue } from "../protocol";
import { type Failure, SHOW_SETTINGS } from "./failures";

export interface ModelOption {
  /** As the editor's models take it. */
  name: string;
  value: Json;
  /** The name in the settings. */
  parameter: string;
  /** Who set it: a layer, `session`, `agent` or `request`. */
  origin: string;
}

const BUILT_IN = "built-in";

/** Fields of a body that are not parameters. */
const OTHER_FIELDS: ReadonlySet<string> = new Set([
  "model",
  "messages",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "stream",
  "stream_options",
  "prompt_cache_key",
  "user",
]);

/** Fields that are called otherwise in the settings. */
const PARAMETERS: Readonly<Record<string, string>> = {
  max_completion_tokens: "max_tokens",
  reasoning_effort: "thinking",
};

const OPTIONS: Readonly<Record<string, string>> = { max_completion_tokens: "max_tokens" };

export function modelOptionsOf(
  body: Record<string, Json> | undefined,
  parameters: Readonly<Record<string, ParameterValue>>,
): ModelOption[] {
  return Object.entries(body ?? {}).flatMap(([field, value]) => {
    const parameter = PARAMETERS[field] ?? field;
    const origin = parameters[parameter]?.origin ?? BUILT_IN;
    if (OTHER_FIELDS.has(field) || origin === BUILT_IN || value === null) {
      return [];
    }
    return [{ name: OPTIONS[field] ?? field, value, parameter, origin }];
  });
}

/** A failure of the model, with the parameters that its text names and where they are set. */
export function explainOptions(failure: Failure, options: readonly ModelOption[]): Failure {
  const text = failure.message.toLowerCase();
  const names = ({ name, parameter }: ModelOption) => [name, parameter, name.replaceAll("_", " ")];
  const refused = options.filter((option) => names(option).some((name) => text.includes(name)));
  if (refused.length === 0) {
    return failure;
  }
  const list = refused.map(({ parameter, origin }) => `\`parameters.${parameter}\` (${origin})`).join(", ");
  return {
    ...failure,
    message: `${failure.message} The request had ${list}: change it there, or pick another model.`,
    actions: [...failure.actions, SHOW_SETTINGS],
  };
}
