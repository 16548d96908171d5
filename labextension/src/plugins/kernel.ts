import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { LarikKernel } from '../kernel';
import { ILarikKernel } from '../tokens';

export const kernelPlugin: JupyterFrontEndPlugin<ILarikKernel> = {
  id: 'larik-nb:kernel',
  description: 'Follows the Larik session of the current notebook.',
  autoStart: true,
  requires: [INotebookTracker],
  provides: ILarikKernel,
  activate: (_, tracker: INotebookTracker) => new LarikKernel(tracker)
};
