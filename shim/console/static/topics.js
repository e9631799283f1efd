import { get } from '/api.js';
import { changeButton, createTopic, deleteTopic, produce } from '/changes.js';
import { bytes, facts, field, h, later, link, message, number, show, table, tag } from '/dom.js';
import { configsView } from '/configs.js';
import { recordsView } from '/records.js';
import { producersView } from '/transactions.js';

const SIZE = 100;
export const topicLink = name => link(`#/topics/${encodeURIComponent(name)}`, name);

export async function topicsPage({ content, query, signal }) {
  let start = Number(query.get('start') || 0);
  const filter = h('input', { type: 'search', value: query.get('filter') || '', placeholder: 'part of a name' });
  const internal = h('input', { type: 'checkbox' });
  const body = h('div');
  const read = async () => {
    const found = await get('topics', { filter: filter.value, start, limit: SIZE, internal: internal.checked ? 'yes' : 'no' }, signal);
    const turn = (by, key, text) => h('button', {
      'data-key': key, disabled: by < 0 ? start === 0 : start + SIZE >= found.total,
      onclick: () => { start = Math.max(0, start + by); read(); },
    }, text);
    show(body,
      table([
        ['Topic', one => [topicLink(one.name), ' ', one.internal && tag('internal'), one.error && tag(one.error, 'bad')]],
        ['Partitions', one => number(one.partitions), 'n'],
        ['Replicas', one => number(one.replicas), 'n hide-narrow'],
        ['Offsets', one => number(one.offsets), 'n'],
        ['On disk', one => bytes(one.bytes), 'n'],
        ['', one => [one.offline ? tag(`${one.offline} offline`, 'bad') : null, one.underReplicated ? tag(`${one.underReplicated} under-replicated`, 'warn') : null], 'hide-narrow'],
      ], found.topics, filter.value ? 'No topic has such a name.' : 'There are no topics that you may see.'),
      found.total > SIZE && h('div', { className: 'bar after' }, turn(-SIZE, 'p', 'Previous'), turn(SIZE, 'n', 'Next'),
        h('span', { className: 'soft' }, `${number(start + 1)}–${number(Math.min(found.total, start + SIZE))} of ${number(found.total)}`)));
  };
  const again = later(() => { start = 0; read().catch(error => show(body, message(error.message, 'bad'))); }, 150);
  filter.addEventListener('input', again);
  internal.addEventListener('change', again);
  await read();
  show(content, h('h1', null, 'Topics'), h('div', { className: 'bar' }, field('Filter', filter),
    h('label', { className: 'check' }, internal, 'with internal topics'), h('span', { className: 'push' }),
    changeButton('Create a topic', () => createTopic(topic => { location.hash = `#/topics/${encodeURIComponent(topic.name)}`; }))), body);
}

// A change is seen at once: the page is read again.
function actions(at, topic) {
  const write = changeButton('Write a record', () => produce(topic, () => topicPage(at).catch(() => {})));
  const drop = changeButton('Delete', () => deleteTopic(topic.name, () => { location.hash = '#/topics'; }), 'danger');
  return (write || drop) && h('div', { className: 'bar' }, write, drop);
}

const TABS = [['records', 'Records'], ['partitions', 'Partitions'], ['producers', 'Producers'], ['configs', 'Configs']];

export async function topicPage(at) {
  const { content, parts, signal } = at;
  const [name, tab = 'records'] = parts;
  const topic = await get('topic', { name }, signal);
  const sum = pick => topic.partitions.reduce((total, one) => total + (pick(one) || 0), 0);
  const held = topic.partitions.filter(one => one.lastStable !== null && one.lastStable < one.latest);
  const body = h('div');
  show(content,
    h('p', { className: 'small' }, link('#/topics', 'Topics'), ' /'),
    h('h1', null, name, ' ', topic.internal && tag('internal')),
    facts([
      ['Partitions', number(topic.partitionCount)],
      ['Offsets', number(sum(one => one.latest - one.earliest))],
      ['On disk', bytes(sum(one => one.bytes))],
      held.length ? ['Held back by transactions', tag(`${number(sum(one => one.latest - one.lastStable))} offsets, partition${held.length > 1 ? 's' : ''} ${held.slice(0, 8).map(one => one.partition).join(', ')}${held.length > 8 ? ' …' : ''}`, 'warn')] : null,
      ['Id', h('span', { className: 'mono' }, topic.id)],
    ]),
    actions(at, topic),
    h('div', { className: 'tabs' }, TABS.map(([key, title]) =>
      link(`#/topics/${encodeURIComponent(name)}/${key}`, title, key === tab ? { 'aria-current': 'page' } : {}))),
    body);
  if (tab === 'partitions') showPartitions(body, topic);
  else if (tab === 'producers') await producersView(body, topic, at);
  else if (tab === 'configs') await configsView(body, 'topic', name, at);
  else await recordsView(body, topic, at);
}

function showPartitions(body, topic) {
  show(body, table([
    ['Partition', one => link(`#/topics/${encodeURIComponent(topic.name)}/records?partition=${one.partition}`, one.partition), 'n'],
    ['Leader', one => (one.leader < 0 ? tag('none', 'bad') : one.leader), 'n'],
    ['Epoch', one => one.epoch, 'n hide-narrow'],
    ['Replicas', one => one.replicas.join(', ')],
    ['In sync', one => (one.isr.length < one.replicas.length ? tag(one.isr.join(', ') || 'none', 'warn') : one.isr.join(', '))],
    ['First offset', one => number(one.earliest), 'n'],
    ['Last stable', one => (one.lastStable < one.latest ? tag(number(one.lastStable), 'warn') : number(one.lastStable)), 'n'],
    ['High watermark', one => number(one.latest), 'n'],
    ['On disk', one => bytes(one.bytes), 'n'],
  ], topic.partitions));
  if (topic.partitions.length < topic.partitionCount) body.append(message(`The first ${topic.partitions.length} of ${topic.partitionCount} partitions are shown.`));
}
