import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { ISignal, Signal } from '@lumino/signaling';
import { CommandIDs } from '../commands';
import { ILarikKernel, ILarikSettings } from '../tokens';
import { ModelItem } from '../widgets/modelItem';

export const statusModelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'larik-nb:status-model',
  description: 'Shows in the status bar which model answers and what the session has spent.',
  autoStart: true,
  requires: [ILarikKernel, ILarikSettings],
  optional: [IStatusBar, ITranslator],
  activate: (
    app,
    kernel: ILarikKernel,
    settings: ILarikSettings,
    bar: IStatusBar | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load('larik-nb');
    bar?.registerStatusItem('larik-nb:status-model', {
      item: new ModelItem(kernel, trans, () => void app.commands.execute(CommandIDs.pickModel)),
      align: 'right',
      isActive: () => settings.statusItem && kernel.status !== null,
      activeStateChanged: either(kernel.statusChanged, settings.changed)
    });
  }
};

/** A signal that is emitted when one of two is. */
function either<T, U>(one: ISignal<T, void>, other: ISignal<U, void>): ISignal<object, void> {
  const both = new Signal<object, void>({});
  one.connect(() => both.emit());
  other.connect(() => both.emit());
  return both;
}
