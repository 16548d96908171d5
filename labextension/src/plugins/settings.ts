import { JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { LarikSettings, SETTINGS } from '../settings';
import { ILarikSettings } from '../tokens';

export const settingsPlugin: JupyterFrontEndPlugin<ILarikSettings> = {
  id: SETTINGS,
  description: 'Which parts of Larik are shown, and where its commands are in the menus.',
  autoStart: true,
  optional: [ISettingRegistry],
  provides: ILarikSettings,
  activate: (_, registry: ISettingRegistry | null) => {
    const settings = new LarikSettings();
    registry?.load(SETTINGS).then(
      loaded => settings.follow(loaded),
      (reason: unknown) => console.warn('larik-nb: the settings could not be read; all is shown', reason)
    );
    return settings;
  }
};
