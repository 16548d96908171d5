// jsdom lacks what Lumino widgets ask for when they load.
const scope = globalThis as unknown as Record<string, unknown>;
scope.DragEvent ??= class extends MouseEvent {};
scope.ResizeObserver ??= class {
  observe(): void {}
  unobserve(): void {}
  disconnect(): void {}
};
