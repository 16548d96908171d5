import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { kernelPlugin } from './plugins/kernel';
import { statusModelPlugin } from './plugins/statusModel';
import { ILarikKernel } from './tokens';

export { ILarikKernel, IStatus } from './tokens';

const plugins: [JupyterFrontEndPlugin<ILarikKernel>, JupyterFrontEndPlugin<void>] = [
  kernelPlugin,
  statusModelPlugin
];

export default plugins;
