import { get } from '/api.js';
import { changeButton, setOption } from '/changes.js';
import { field, h, show, table, tag } from '/dom.js';

export async function configsView(body, kind, name, at) {
  const { signal } = at;
  let configs = [];
  const filter = h('input', { type: 'search', placeholder: 'part of a name or value' });
  const only = h('input', { type: 'checkbox' });
  const list = h('div');
  const read = async () => { ({ configs } = await get('configs', { kind, name }, signal)); draw(); };
  const label = option => `Set ${option}`;
  // What was looked for stays, and who has only a keyboard goes on where they were.
  const again = async option => {
    await read();
    for (const one of list.querySelectorAll('button')) if (one.getAttribute('aria-label') === label(option)) one.focus();
  };
  const draw = () => {
    const wanted = filter.value.toLowerCase();
    show(list, table([
      ['Option', one => [h('span', { className: 'mono', title: one.documentation }, one.name), one.isReadOnly ? [' ', tag('fixed')] : null,
        kind === 'topic' && !one.isReadOnly ? [' ', changeButton('Set', () => setOption(name, one, () => again(one.name).catch(() => {})), 'small', label(one.name))] : null]],
      ['Value', one => h('span', { className: 'mono' }, one.isSensitive ? '(secret)' : one.value === null ? 'null' : one.value === '' ? '""' : one.value)],
      ['Source', one => tag(one.source, one.isDefault ? '' : 'note')],
      ['Instead of', one => h('span', { className: 'soft small' }, one.synonyms.slice(one.isDefault ? 0 : 1).filter(each => each.value !== one.value).map(each => `${each.name} = ${each.value} (${each.source})`).join('; ')), 'hide-narrow'],
    ], configs.filter(one => (!only.checked || !one.isDefault) && (one.name.includes(wanted) || String(one.value).toLowerCase().includes(wanted))), 'No option is like this.'));
  };
  filter.addEventListener('input', draw);
  only.addEventListener('change', draw);
  await read();
  show(body, h('div', { className: 'bar' }, field('Filter', filter), h('label', { className: 'check' }, only, 'without defaults')), list);
}
