import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { NotebookEditor } from '../edits';
import { LarikKernel } from '../kernel';
import { ILarikKernel } from '../tokens';

export const kernelPlugin: JupyterFrontEndPlugin<ILarikKernel> = {
  id: 'larik-nb:kernel',
  description: 'Talks with the kernels of the open notebooks, and changes their cells when asked to.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ITranslator],
  provides: ILarikKernel,
  activate: (_, tracker: INotebookTracker, translator: ITranslator | null) => {
    const trans = (translator ?? nullTranslator).load('larik-nb');
    return new LarikKernel(tracker, kernelId => new NotebookEditor(tracker, kernelId, trans));
  }
};
