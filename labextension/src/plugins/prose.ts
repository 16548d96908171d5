import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { EditorExtensionRegistry, IEditorExtensionRegistry } from '@jupyterlab/codemirror';
import { EditorView, ViewPlugin } from '@codemirror/view';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { proseHighlighting, refresh } from '../prose/highlight';
import { ILarikSettings } from '../tokens';

// Of a notebook's code cell; before its kernel is known it has the plain one.
const CODE = new Set(['text/x-ipython', 'text/x-python', 'text/plain']);

export const prosePlugin: JupyterFrontEndPlugin<void> = {
  id: 'larik-nb:prose',
  description: 'Lets %%larik cells read as prose.',
  autoStart: true,
  requires: [IEditorExtensionRegistry, ILarikSettings],
  optional: [ITranslator],
  activate: (
    _,
    registry: IEditorExtensionRegistry,
    settings: ILarikSettings,
    translator: ITranslator | null
  ) => {
    const label = (translator ?? nullTranslator).load('larik-nb').__('Question to the model');
    const views = new Set<EditorView>();
    settings.changed.connect(() => views.forEach(view => view.dispatch({ effects: refresh.of(null) })));
    registry.addExtension({
      name: 'larik-nb:prose',
      factory: options => {
        if (!options.inline) {
          return null; // a file's editor: prompts are in cells
        }
        const isOn = (): boolean => settings.highlighting && CODE.has(options.model.mimeType);
        return EditorExtensionRegistry.createImmutableExtension([proseHighlighting(isOn, label), followed(views)]);
      }
    });
  }
};

/** Keeps the editor in `views` while it is there. */
function followed(views: Set<EditorView>): ViewPlugin<{ destroy(): void }> {
  return ViewPlugin.define(view => {
    views.add(view);
    return { destroy: () => views.delete(view) };
  });
}
