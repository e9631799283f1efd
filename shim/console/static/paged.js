// A filter, a table and its pages.

import { field, h, later, message, number, show } from '/dom.js';

// read({filter, start, limit, ...extra}) -> {total, rows}; draw(rows) -> elements
export async function paged(place, { size, read, draw, extra = [], label = 'Filter', empty }) {
  let start = 0;
  const filter = h('input', { type: 'search', placeholder: 'part of a name' });
  const body = h('div');
  async function fill() {
    const values = Object.fromEntries(extra.map(({ name, control }) => [name, control.value]));
    const found = await read({ filter: filter.value, start, limit: size, ...values });
    const turn = (by, key, text) => h('button', {
      'data-key': key, disabled: by < 0 ? start === 0 : start + size >= found.total,
      onclick: () => { start = Math.max(0, start + by); again(); },
    }, text);
    show(body, found.rows.length ? draw(found.rows) : h('p', { className: 'soft' }, filter.value ? 'Nothing has such a name.' : empty),
      found.total > size && h('div', { className: 'bar after' }, turn(-size, 'p', 'Previous'), turn(size, 'n', 'Next'),
        h('span', { className: 'soft' }, `${number(start + 1)}–${number(Math.min(found.total, start + size))} of ${number(found.total)}`)));
  }
  const again = () => fill().catch(error => { if (error.name !== 'AbortError') show(body, message(error.message, 'bad')); });
  const anew = later(() => { start = 0; again(); }, 200);
  filter.addEventListener('input', anew);
  for (const { control } of extra) control.addEventListener('change', anew);
  await fill();
  show(place, h('div', { className: 'bar' }, field(label, filter), extra.map(({ title, control }) => field(title, control))), body);
}

export const choice = options => h('select', null, options.map(([value, text]) => h('option', { value }, text)));
