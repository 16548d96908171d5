import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { CodeCell } from '@jupyterlab/cells';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator, TranslationBundle } from '@jupyterlab/translation';
import { Commands, COMMANDS } from '../commands';
import { FixRows } from '../widgets/fixRows';
import { ILarikKernel, ILarikSettings } from '../tokens';

export const commandsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'larik-nb:commands',
  description: 'Larik in the palette and the menus, and a button below errors.',
  autoStart: true,
  requires: [INotebookTracker, ILarikKernel, ILarikSettings],
  optional: [ICommandPalette, ITranslator],
  activate: (
    app,
    tracker: INotebookTracker,
    kernel: ILarikKernel,
    settings: ILarikSettings,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ) => {
    const trans: TranslationBundle = (translator ?? nullTranslator).load('larik-nb');
    const commands = new Commands(app, tracker, kernel, trans);
    commands.register();
    COMMANDS.forEach((command, rank) => palette?.addItem({ command, category: trans.__('Larik'), rank }));
    kernel.pickerAsked.connect((_, kernelId) => commands.pickModelOf(kernelId));
    const fix = (panel: NotebookPanel, cell: CodeCell): void => void commands.ask('fix', panel, cell.model.id);
    new FixRows(tracker, kernel, settings, trans, fix);
  }
};
