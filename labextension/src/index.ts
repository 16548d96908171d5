import { commandsPlugin } from './plugins/commands';
import { formulasPlugin } from './plugins/formulas';
import { kernelPlugin } from './plugins/kernel';
import { panelsPlugin } from './plugins/panels';
import { prosePlugin } from './plugins/prose';
import { settingsPlugin } from './plugins/settings';
import { statusModelPlugin } from './plugins/statusModel';

export { ILarikKernel, ILarikSettings, IStatus } from './tokens';

const plugins = [settingsPlugin, kernelPlugin, statusModelPlugin, commandsPlugin, panelsPlugin, prosePlugin, formulasPlugin];

export default plugins;
