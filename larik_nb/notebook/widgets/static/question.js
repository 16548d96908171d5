// A question: buttons for its answers, or a field for a secret. Keys: an answer's letter, Enter the default, Escape too.

export default panel(({ model, el, on, h, send, say }) => {
  const title = `larik-question-${Math.random().toString(36).slice(2)}`;
  const secret = model.get('secret');
  const choices = model.get('choices');
  const fallback = (secret ? null : choices.find(choice => choice.is_default)) ?? choices.at(-1);

  const answer = value => {
    if (model.get('is_done') || !model.get('live')) return;
    send({ type: 'answer', value });
    for (const control of card.querySelectorAll('button, input')) control.disabled = true;
    say('Answered');
  };
  const choose = choice => answer(secret && choice === choices[0] ? field.value : choice.value);

  const field = h('input', {
    type: 'password',
    class: 'larik-secret',
    autocomplete: 'off',
    autocapitalize: 'off',
    spellcheck: 'false',
    'aria-labelledby': title
  });
  const button = (choice, index) =>
    h(
      'button',
      { class: index === 0 ? 'larik-main' : null, on: { click: () => choose(choice) } },
      choice.label,
      choice.key && !secret ? h('kbd', { 'aria-hidden': 'true' }, choice.key) : null
    );
  const pressed = event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape' && fallback) choose(fallback);
    else if (secret && event.key === 'Enter' && event.target === field) choose(choices[0]);
    else {
      const choice = secret ? null : choices.find(one => one.key && one.key === event.key.toLowerCase());
      if (!choice) return;
      choose(choice);
    }
    event.preventDefault();
    event.stopPropagation();
  };

  const controls = h('div', { class: 'larik-row' }, secret ? field : null, choices.map(button));
  const card = h(
    'div',
    { class: 'larik-card larik-question', role: 'group', 'aria-labelledby': title, on: { keydown: pressed } },
    h('div', { id: title, class: 'larik-question-text' }, model.get('text')),
    model.get('detail') ? h(secret ? 'div' : 'pre', { class: 'larik-question-detail larik-quiet' }, model.get('detail')) : null,
    controls
  );
  el.append(card);

  let isLive = false;
  on('live is_done', () => {
    controls.hidden = !model.get('live');
    for (const control of controls.querySelectorAll('button, input')) control.disabled = model.get('is_done');
    if (model.get('live') && !isLive) {
      isLive = true;
      say(model.get('text'));
      // A question waits for its answer: the focus comes to it, unless somebody is writing.
      const busy = document.activeElement?.closest('input, textarea, [contenteditable="true"]');
      if (!busy) (secret ? field : controls.querySelector('button'))?.focus({ preventScroll: true });
    }
  });
});
