import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { ILarikKernel } from '../tokens';
import { ModelItem } from '../widgets/modelItem';

export const statusModelPlugin: JupyterFrontEndPlugin<void> = {
  id: 'larik-nb:status-model',
  description: 'Shows in the status bar which model answers and what the session has spent.',
  autoStart: true,
  requires: [ILarikKernel],
  optional: [IStatusBar, ITranslator],
  activate: (_, kernel: ILarikKernel, bar: IStatusBar | null, translator: ITranslator | null) => {
    const trans = (translator ?? nullTranslator).load('larik-nb');
    bar?.registerStatusItem('larik-nb:status-model', {
      item: new ModelItem(kernel, trans),
      align: 'right',
      isActive: () => kernel.status !== null,
      activeStateChanged: kernel.statusChanged
    });
  }
};
