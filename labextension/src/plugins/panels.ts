import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { INotebookTracker } from '@jupyterlab/notebook';
import { Panels } from '../panels';

export const panelsPlugin: JupyterFrontEndPlugin<void> = {
  id: 'larik-nb:panels',
  description: 'Lets the text be seen in the place of a widget whose kernel is gone.',
  autoStart: true,
  requires: [INotebookTracker],
  activate: (_, tracker: INotebookTracker) => {
    new Panels(tracker);
  }
};
