import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { IRenderMimeRegistry } from '@jupyterlab/rendermime';
import { sliced } from '../slices';

export const formulasPlugin: JupyterFrontEndPlugin<void> = {
  id: 'larik-nb:formulas',
  description: 'Keeps the page responsive while the formulas of a long answer are typeset.',
  autoStart: true,
  requires: [IRenderMimeRegistry],
  activate: (_, registry: IRenderMimeRegistry) => sliced(registry)
};
