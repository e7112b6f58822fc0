/** The models that the user has picked in the chat. */
import * as vscode from "vscode";

const USED = "nexus.chat.model";

interface Used {
  vendor: string;
  id: string;
}

export class Models {
  private readonly running = new Set<vscode.LanguageModelChat>();

  constructor(private readonly context: vscode.ExtensionContext) {}

  /** A chat request uses this model until what is returned is called. */
  use(model: vscode.LanguageModelChat): () => void {
    this.running.add(model);
    void this.context.globalState.update(USED, { vendor: model.vendor, id: model.id } satisfies Used);
    return () => this.running.delete(model);
  }

  /** A model that may be asked without a dialog. `wanted`: its id or family, where it matters. */
  async allowed(wanted: string | undefined): Promise<vscode.LanguageModelChat | undefined> {
    const running = [...this.running];
    const rest = (await vscode.lm.selectChatModels()).filter(
      (model) => this.context.languageModelAccessInformation.canSendRequest(model) === true,
    );
    const isWanted = (model: vscode.LanguageModelChat): boolean => model.id === wanted || model.family === wanted;
    return [...running, ...rest].find(isWanted) ?? running.at(-1) ?? usedOf(this.context, rest) ?? rest[0];
  }
}

/** The model that the chat used last, else the only one there is; none where it would be a guess among several. */
export async function usedModel(context: vscode.ExtensionContext): Promise<vscode.LanguageModelChat | undefined> {
  const models = await vscode.lm.selectChatModels();
  return usedOf(context, models) ?? (models.length === 1 ? models[0] : undefined);
}

function usedOf(
  context: vscode.ExtensionContext,
  models: readonly vscode.LanguageModelChat[],
): vscode.LanguageModelChat | undefined {
  const used = context.globalState.get<Used>(USED);
  return models.find((model) => model.vendor === used?.vendor && model.id === used.id);
}
