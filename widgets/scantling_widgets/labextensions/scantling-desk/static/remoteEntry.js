// Runs a notebook that asks for it ("scantling": {"run": true} in its metadata) when it is opened and has not run yet.
// Written by hand in the form that JupyterLab loads; only `scantling lab` puts it in the way of a server.
(() => {
  async function run(app, panel) {
    const model = panel?.content?.model;
    if (!model || !panel.sessionContext || panel.scantlingRun) return;
    panel.scantlingRun = true;
    await panel.context.ready;
    if (!panel.context.model.getMetadata?.("scantling")?.run) return;
    await panel.sessionContext.ready;
    const kernel = panel.sessionContext.session?.kernel;
    if (kernel) await kernel.info;
    app.shell.activateById(panel.id);
    await app.commands.execute("notebook:run-all-cells");
  }
  const plugin = {
    id: "scantling-desk:plugin",
    description: "Runs the design desk when its notebook is opened",
    autoStart: true,
    activate: app => {
      app.restored.then(() => {
        const look = () => run(app, app.shell.currentWidget).catch(error => console.warn("The desk did not start by itself:", error));
        app.shell.currentChanged?.connect(look);
        look();
      });
    },
  };
  window._JUPYTERLAB = window._JUPYTERLAB || {};
  window._JUPYTERLAB["scantling-desk"] = {
    init: () => {},
    get: async () => () => ({ __esModule: true, default: plugin }),
  };
})();
