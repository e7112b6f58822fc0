// The floor of the panel's figures: a web view that shows how long the active document is, and nothing else. Its page
// and its messages have the names of the panel's, so that one stopwatch reads both. The page also has how long the
// host took to activate each extension, in milliseconds.
const vscode = require("vscode");

const PAGE = `<!DOCTYPE html><html><body><div class="window"><span class="used"></span></div><script>
const api = acquireVsCodeApi();
addEventListener("message", ({ data }) => {
  document.querySelector(".used").textContent = data.model.used;
  document.body.dataset.activation = JSON.stringify(data.model.activation);
});
api.postMessage("ready");
</script></body></html>`;

exports.activate = ({ subscriptions }) => {
  let view;
  const show = ({ length } = "") => {
    const model = { kind: "window", used: length, activation: activations() };
    view?.webview.postMessage({ type: "show", model });
  };
  const resolveWebviewView = (resolved) => {
    view = resolved;
    view.webview.options = { enableScripts: true };
    view.webview.onDidReceiveMessage(() => show(vscode.window.activeTextEditor?.document.getText()));
    view.webview.html = PAGE;
  };
  subscriptions.push(
    vscode.window.registerWebviewViewProvider("bare.view", { resolveWebviewView }),
    vscode.workspace.onDidChangeTextDocument(({ document }) => show(document.getText())),
    vscode.commands.registerCommand("bare.open", () => vscode.commands.executeCommand("bare.view.focus")),
  );
};

/** Extension → milliseconds to read its code and to activate it, by VS Code's own marks. */
function activations() {
  const took = {};
  for (const { name, startTime } of globalThis.MonacoPerformanceMarks?.getMarks() ?? []) {
    const [, end, extension] =
      /^code\/extHost\/(will|did)(?:LoadExtensionCode|ActivateExtension)\/(.+)$/.exec(name) ?? [];
    if (extension) took[extension] = (took[extension] ?? 0) + (end === "did" ? startTime : -startTime);
  }
  return took;
}
