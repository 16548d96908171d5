/** Stands in for every `@jupyterlab/*` package: the tokens that plugins name. */
export const INotebookTracker = {};
export const IStatusBar = {};
export const ITranslator = {};
export const nullTranslator = { load: () => ({ __: (text: string) => text }) };
