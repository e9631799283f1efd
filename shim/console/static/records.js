import { get } from '/api.js';
import { bytes, counted, field, h, later, message, number, show, tag, time } from '/dom.js';

const STATES = { committed: ['committed', 'good'], aborted: ['aborted', 'bad'], open: ['open', 'warn'], ended: ['ended', ''] };
const ENDED = 'The transaction has ended; its marker lies further on than what was read.';
const TAIL_MS = 1000;
const MOST_TAILED = 500;

export async function recordsView(body, topic, { query, signal }) {
  const partition = h('select', null, h('option', { value: '' }, 'all'),
    topic.partitions.map(one => h('option', { value: one.partition }, one.partition)));
  partition.value = query.get('partition') || '';
  const where = h('select', null,
    [['latest', 'the newest'], ['earliest', 'the oldest'], ['offset', 'offset'], ['time', 'time']].map(([value, text]) => h('option', { value }, text)));
  where.value = query.has('offset') ? 'offset' : 'latest';
  const offset = h('input', { type: 'text', inputmode: 'numeric', value: query.get('offset') || '0', size: 12 });
  const moment = h('input', { type: 'datetime-local', step: '1' });
  const contains = h('input', { type: 'search', placeholder: 'in key, value or headers' });
  const follow = h('button', { 'aria-pressed': 'false', title: 'show new records as they come' }, 'Live');
  const offsetField = field('Offset', offset);
  const timeField = field('From', moment);
  const list = h('div');
  let page = null;
  let timer = null;
  signal.addEventListener('abort', () => clearTimeout(timer));

  const common = () => ({ topic: topic.name, partition: partition.value, contains: contains.value });
  const fail = error => { if (error.name !== 'AbortError') show(list, message(error.message, 'bad')); };
  const drawFields = () => { offsetField.hidden = where.value !== 'offset'; timeField.hidden = where.value !== 'time'; };

  async function read(direction, from) {
    stop();
    show(list, h('p', { className: 'soft' }, 'Reading…'));
    page = await get('records', { ...common(), direction, from }, signal);
    draw(direction);
  }

  function begin() {
    drawFields();
    if (where.value === 'latest') return read('backward', 'latest').catch(fail);
    if (where.value === 'earliest') return read('forward', 'earliest').catch(fail);
    if (where.value === 'offset') return /^\d+$/.test(offset.value) ? read('forward', `offset:${offset.value}`).catch(fail) : show(list, message('An offset is a whole number.', 'warn'));
    const ms = new Date(moment.value).getTime();
    return Number.isNaN(ms) ? show(list, message('Choose a time to read from.')) : read('forward', `time:${ms}`).catch(fail);
  }

  function draw(direction) {
    const rows = page.records;
    const turn = (way, cursor, isOver, key, text) => h('button', { 'data-key': key, disabled: isOver, onclick: () => read(way, cursor).catch(fail) }, text);
    show(list,
      page.leftOut ? message(`${page.leftOut} partitions are left out: choose one.`, 'warn') : null,
      rows.length ? grid(rows, topic.name) : h('p', { className: 'soft' },
        contains.value ? `Nothing found in ${counted(page.searched, 'record')}${direction === 'forward' ? (page.atEnd ? ', up to the end.' : '; there are newer ones.') : (page.atStart ? ', down to the start.' : '; there are older ones.')}` : 'No records are here.'),
      h('div', { className: 'bar after' },
        turn('backward', page.older, page.atStart, 'n', contains.value ? 'Search older' : 'Older'), turn('forward', page.newer, page.atEnd, 'p', contains.value ? 'Search newer' : 'Newer'),
        h('span', { className: 'soft small' }, contains.value ? `${number(rows.length)} of ${counted(page.searched, 'record')}` : counted(rows.length, 'record'))));
  }

  function stop() {
    clearTimeout(timer);
    timer = null;
    follow.setAttribute('aria-pressed', 'false');
  }

  async function tail() {
    let cursor = (await get('records', { ...common(), contains: '', direction: 'backward', from: 'latest', limit: 1 }, signal)).newer;
    follow.setAttribute('aria-pressed', 'true');
    show(list, h('p', { className: 'soft' }, 'Waiting for new records…'));
    let rows = null;
    const again = async () => {
      if (!document.hidden) {
        const found = await get('records', { ...common(), direction: 'forward', from: cursor }, signal);
        cursor = found.newer;
        if (timer === null) return;
        if (found.records.length) {
          if (!rows) { const made = grid([], topic.name); rows = made.querySelector('tbody'); show(list, made); }
          for (const one of found.records) { const row = line(one, topic.name); row.classList.add('fresh'); rows.prepend(row); }
          while (rows.children.length > MOST_TAILED) rows.lastChild.remove();
        }
        if (!found.atEnd) { timer = setTimeout(step, 50); return; }
      }
      timer = setTimeout(step, TAIL_MS);
    };
    const step = () => again().catch(error => { stop(); fail(error); });
    timer = setTimeout(step, 0);
  }

  follow.addEventListener('click', () => (timer === null ? tail().catch(fail) : stop()));
  partition.addEventListener('change', begin);
  where.addEventListener('change', begin);
  moment.addEventListener('change', begin);
  for (const control of [offset, contains]) control.addEventListener('input', later(begin, 350));
  show(body, h('div', { className: 'bar' }, field('Partition', partition), field('Start at', where), offsetField, timeField, field('Search', contains), h('span', { className: 'push' }), follow), list);
  await begin();
}

function grid(rows, topic) {
  return h('div', { className: 'scroll records' }, h('table', null,
    h('colgroup', null, ['60', '100', '190', '', '', '120'].map((width, at) => h('col', { width: at === 3 ? '18%' : width || null, className: at === 0 || at === 2 ? 'wide' : null }))),
    h('thead', null, h('tr', null, [['P', 'n wide'], ['Offset', 'n'], ['Time', 'wide'], ['Key', ''], ['Value', ''], ['', '']].map(([title, kind]) => h('th', { className: kind, scope: 'col' }, title)))),
    h('tbody', null, rows.map(one => line(one, topic)))));
}

const flat = part => (part === null || part === undefined ? h('span', { className: 'line soft' }, 'null') : h('span', { className: 'line' }, part.text.length > 400 ? part.text.slice(0, 400).replace(/\s+/g, ' ') : part.text.replace(/\s+/g, ' ') || h('span', { className: 'soft' }, 'empty')));

function line(one, topic) {
  const [state, kind] = STATES[one.transaction] || ['', ''];
  const what = one.control ? h('span', { className: 'line' }, `${one.control.type} of producer ${one.producer ? `${one.producer.id}, epoch ${one.producer.epoch}` : 'none'}`) : one.problem ? h('span', { className: 'line' }, one.problem) : flat(one.value);
  const row = h('tr', { tabindex: '0', className: [one.control ? 'control' : '', one.transaction || ''].join(' ') },
    h('td', { className: 'n wide' }, one.partition), h('td', { className: 'n' }, one.offset), h('td', { className: 'keep wide small' }, time(one.timestamp)),
    h('td', { className: 'key' }, one.control || one.problem ? '' : flat(one.key)), h('td', { className: 'value' }, what),
    h('td', { className: 'keep' }, one.control ? tag('control', 'note') : state && tag(state, kind), one.headers && one.headers.length ? [' ', tag(`${one.headers.length} header${one.headers.length > 1 ? 's' : ''}`)] : null));
  const toggle = () => {
    const next = row.nextElementSibling;
    if (next && next.classList.contains('opened')) { next.remove(); row.removeAttribute('aria-expanded'); return; }
    row.after(h('tr', { className: 'opened' }, h('td', { colspan: 6 }, detail(one, topic))));
    row.setAttribute('aria-expanded', 'true');
  };
  row.addEventListener('click', toggle);
  row.addEventListener('keydown', event => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); toggle(); } });
  return row;
}

function part(title, value, more) {
  if (value === undefined) return null;
  if (value === null) return [h('h3', null, title, tag('null'))];
  return [
    h('h3', null, title, tag(value.kind, 'note'), bytes(value.size), value.number !== undefined ? `as a number ${value.number}` : null,
      value.cut && more ? h('button', { onclick: more }, 'Show whole') : value.cut ? 'cut' : null),
    value.problem ? message(value.problem, 'warn') : null, h('pre', null, value.text)];
}

function detail(one, topic) {
  const place = h('div', { className: 'detail' });
  const whole = async () => {
    try { draw(await get('record', { topic, partition: one.partition, offset: one.offset }), true); } catch (error) { place.prepend(message(error.message, 'bad')); }
  };
  const draw = (found, isWhole) => {
    const producer = found.producer;
    show(place,
      h('p', { className: 'small soft' }, [
        `partition ${found.partition}, offset ${found.offset}`, `${time(found.timestamp)} (${found.timestampType})`,
        `batch ${found.batch.first}–${found.batch.last}, ${bytes(found.batch.bytes)}, ${found.codec}`,
        producer && `producer ${producer.id}, epoch ${producer.epoch}${producer.sequence === undefined ? '' : `, sequence ${producer.sequence}`}`,
        found.control && `coordinator epoch ${found.control.coordinatorEpoch}`,
        found.transaction && `transaction ${found.transaction}`,
      ].filter(Boolean).join(' · ')),
      found.transaction === 'ended' ? message(ENDED) : null,
      found.problem ? message(found.problem, 'bad') : null,
      part('Key', found.key, isWhole ? null : whole), part('Value', found.value, isWhole ? null : whole),
      found.headers && found.headers.length ? [h('h3', null, 'Headers'), h('table', null, h('tbody', null, found.headers.map(([name, value]) =>
        h('tr', null, h('td', { className: 'mono' }, name), h('td', { className: 'mono' }, value === null ? tag('null') : value.text)))))] : null,
      found.moreHeaders ? h('p', { className: 'soft small' }, `and ${found.moreHeaders} more headers`) : null);
  };
  draw(one, false);
  return place;
}
