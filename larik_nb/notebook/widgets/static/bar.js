// The thin bar over an answer under way. Its seconds tick here.

export default panel(({ model, el, signal, on, h, send, say }) => {
  const words = { waiting: 'waiting', thinking: 'thinking', answering: 'answering' };
  let begun = 0;

  const dot = h('span', { class: 'larik-bar-dot', 'aria-hidden': 'true' });
  const name = h('span', { class: 'larik-bar-model' });
  const doing = h('span', { class: 'larik-quiet' });
  const clock = h('span', { class: 'larik-quiet', role: 'timer', 'aria-live': 'off' });
  const spent = h('span', { class: 'larik-quiet larik-bar-spent' });
  const stop = h(
    'button',
    {
      class: 'larik-bar-stop',
      on: {
        click: () => {
          if (stop.disabled) return;
          stop.disabled = true;
          stop.textContent = 'Stopping…';
          send({ type: 'stop' });
          say('Stopping');
        }
      }
    },
    'Stop'
  );
  const lines = h('div', { class: 'larik-bar-lines larik-quiet' });
  el.append(
    lines,
    h('div', { class: 'larik-bar', role: 'group', 'aria-label': 'Answer under way' }, dot, name, doing, clock, spent, stop)
  );

  const tick = () => {
    const seconds = Math.max(0, Math.round((performance.now() - begun) / 1000));
    clock.textContent = seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
  };
  on('elapsed_s', () => {
    begun = performance.now() - model.get('elapsed_s') * 1000;
    tick();
  });
  const timer = setInterval(tick, 1000);
  signal.addEventListener('abort', () => clearInterval(timer));

  on('model phase spent lines live', () => {
    name.textContent = model.get('model');
    doing.textContent = words[model.get('phase')] ?? '';
    spent.textContent = model.get('spent');
    stop.hidden = !model.get('live');
    lines.replaceChildren(...model.get('lines').map(line => h('div', {}, line)));
    lines.hidden = !model.get('lines').length;
  });
  on('phase', () => say(`${model.get('model')} is ${words[model.get('phase')] ?? 'working'}`));
});
