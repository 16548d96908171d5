// The models there are, one a line: `provider/model · 1M · $2/$10 · vision tools thinking · ok`.

export default panel(({ model, el, h, on, send, say, signal }) => {
  const id = `larik-picker-${model.get('view').id}`;
  const now = h('div', { class: 'larik-picker-now' });
  const news = h('div', { class: 'larik-quiet larik-picker-news' });
  const list = makeList({
    h,
    signal,
    say,
    id,
    label: 'Choose a model',
    rowHeight: 28,
    pick: spec => send({ type: 'choose', spec }),
    leave: () => send({ type: 'leave' })
  });
  const close = h('button', { on: { click: () => send({ type: 'leave' }) } }, 'Close ', h('kbd', { 'aria-hidden': 'true' }, 'Esc'));
  el.append(
    h(
      'section',
      { class: 'larik-card larik-picker', 'aria-label': 'Model' },
      h('div', { class: 'larik-row larik-picker-head' }, now, close),
      list.node,
      news
    )
  );
  on('view', () => {
    const view = model.get('view');
    now.textContent = view.now;
    news.textContent = [view.note, view.progress].filter(Boolean).join(' · ');
    if (view.note) say(view.note);
  });
  on('rows', () => list.set(model.get('rows')));
  focusWhenFresh(model, el, () => list.focus());
});
