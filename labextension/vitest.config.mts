import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url));

export default defineConfig({
  resolve: {
    alias: [
      // The real packages pull in modules that need a browser; what is tested here needs their types only.
      { find: /^@jupyterlab\/.*/, replacement: here('test/jupyterlab.ts') },
      // Without this Node loads a second copy of Lumino's signals for its widgets, and disposing one side
      // does not disconnect the other.
      { find: /^@lumino\/([a-z]+)$/, replacement: here('node_modules/@lumino/$1/dist/index.es6.js') }
    ]
  },
  test: {
    environment: 'jsdom',
    include: ['src/__tests__/**/*.test.ts'],
    // Yjs says so of every cell that JupyterLab's own document makes.
    onConsoleLog: text => !text.startsWith('Invalid access: Add Yjs type'),
    setupFiles: ['test/setup.ts'],
    server: { deps: { inline: [/@lumino/] } }
  }
});
