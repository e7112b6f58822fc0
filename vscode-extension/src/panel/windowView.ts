/** The web view of the context window: shows a model, and tells what the user does there. */
import * as vscode from "vscode";
import { type FromPage, fromPage, type ToPage } from "./messages";
import { pageHtml } from "./page";
import type { WindowModel } from "./window";

export interface WindowView extends vscode.Disposable {
  show(model: WindowModel): void;
}

export interface WindowEvents {
  onVisible(visible: boolean): void;
  onMessage(message: Exclude<FromPage, { type: "ready" }>): void;
}

export function windowView(extension: vscode.Uri, events: WindowEvents): WindowView {
  let view: vscode.WebviewView | undefined;
  let heard: readonly vscode.Disposable[] = [];
  let ready = false;
  let model: WindowModel | undefined;
  let posted = "";

  function post(): void {
    if (!view?.visible || !ready || !model) return;
    const message: ToPage = { type: "show", model };
    const text = JSON.stringify(message);
    if (text === posted) return;
    posted = text;
    void view.webview.postMessage(message);
  }

  function visibilityChanged(): void {
    const visible = view?.visible ?? false;
    if (!visible) [ready, posted] = [false, ""]; // a hidden page is gone; a new one says when it is ready
    events.onVisible(visible);
    post();
  }

  function received(raw: unknown): void {
    const message = fromPage(raw);
    if (!message) return;
    if (message.type === "ready") {
      [ready, posted] = [true, ""];
      post();
    } else events.onMessage(message);
  }

  function forget(): void {
    for (const one of heard) one.dispose();
  }

  function resolve(resolved: vscode.WebviewView): void {
    view = resolved;
    [ready, posted] = [false, ""];
    const { webview } = resolved;
    const media = vscode.Uri.joinPath(extension, "media", "panel");
    const dist = vscode.Uri.joinPath(extension, "dist");
    webview.options = { enableScripts: true, localResourceRoots: [media, dist] };
    forget();
    heard = [
      webview.onDidReceiveMessage(received),
      resolved.onDidChangeVisibility(visibilityChanged),
      resolved.onDidDispose(() => {
        if (view !== resolved) return;
        forget();
        view = undefined;
        visibilityChanged();
      }),
    ];
    webview.html = pageHtml({
      script: webview.asWebviewUri(vscode.Uri.joinPath(dist, "panel.js")).toString(),
      style: webview.asWebviewUri(vscode.Uri.joinPath(media, "panel.css")).toString(),
      source: webview.cspSource,
    });
    events.onVisible(resolved.visible);
  }

  const registered = vscode.window.registerWebviewViewProvider("nexus.window", { resolveWebviewView: resolve });
  return {
    show(next) {
      model = next;
      post();
    },
    dispose() {
      forget();
      registered.dispose();
    },
  };
}
