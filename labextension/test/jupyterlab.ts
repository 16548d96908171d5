/** Stands in for every `@jupyterlab/*` package: what modules under test name of them when they load. */
export const INotebookTracker = {};
export const IStatusBar = {};
export const ITranslator = {};
export const nullTranslator = { load: () => ({ __: (text: string) => text }) };
export const Dialog = {};
export const IRenderMimeRegistry = {};
