import { get } from '/api.js';
import { changeButton, endTransaction } from '/changes.js';
import { duration, facts, h, link, message, number, show, table, tag, time } from '/dom.js';
import { choice, paged } from '/paged.js';

const STATES = ['Empty', 'Ongoing', 'PrepareCommit', 'PrepareAbort', 'CompleteCommit', 'CompleteAbort', 'PrepareEpochFence', 'Dead'];
const KIND = { Ongoing: 'warn', CompleteCommit: 'good', CompleteAbort: 'bad' };
const stateTag = state => tag(state, KIND[state] || '');
const transactionLink = name => link(`#/transactions/${encodeURIComponent(name)}`, name);
const partitionLink = (topic, partition, offset) => link(`#/topics/${encodeURIComponent(topic)}/records?partition=${partition}${offset === null || offset === undefined ? '' : `&offset=${offset}`}`, `${topic}-${partition}`);
const age = start => (start >= 0 ? duration(Date.now() - start) : '–');

export async function transactionsPage({ content, parts, signal }) {
  const tab = parts[0] === undefined ? 'ids' : 'held';
  const body = h('div');
  if (tab === 'ids') {
    const state = choice([['', 'all'], ...STATES.map(one => [one, one])]);
    await paged(body, {
      size: 50, empty: 'There are no transactional ids that you may see.', extra: [{ name: 'state', title: 'State', control: state }],
      read: async how => { const found = await get('transactions', how, signal); return { total: found.total, rows: found.transactions }; },
      draw: rows => table([
        ['Transactional id', one => transactionLink(one.name)], ['State', one => (one.error ? tag(one.error, 'bad') : stateTag(one.state))],
        ['Open for', one => age(one.start), 'n'], ['Timeout', one => duration(one.timeout), 'n'],
        ['Producer', one => `${one.producer}, epoch ${one.epoch}`, 'n hide-narrow'], ['Partitions', one => number(one.partitions.length), 'n hide-narrow'],
      ], rows),
    });
  } else show(body, heldBody(await get('held', {}, signal)));
  show(content, h('h1', null, 'Transactions'), h('div', { className: 'tabs' },
    [['', 'Transactional ids', 'ids'], ['/-/held', 'What is held back', 'held']].map(([path, title, key]) => link(`#/transactions${path}`, title, key === tab ? { 'aria-current': 'page' } : {}))), body);
}

function heldBody(held) {
  return [
    h('p', { className: 'soft' }, 'Readers of committed records (read_committed) stop at the last stable offset of a partition: where its oldest open transaction begins.'),
    held.partitions.length ? table([
      ['Partition', one => partitionLink(one.topic, one.partition, one.lastStable)],
      ['Held back', one => h('b', null, number(one.latest - one.lastStable)), 'n'],
      ['Last stable', one => number(one.lastStable), 'n hide-narrow'], ['High watermark', one => number(one.latest), 'n hide-narrow'],
      ['By', one => (one.open.length ? one.open.slice(0, 5).map((each, at) => h('div', null, each.name ? transactionLink(each.name) : tag('hanging: no coordinator knows it', 'bad'),
        h('span', { className: 'soft small' }, ` producer ${each.producer}, epoch ${each.epoch}, from offset ${number(each.start)}, last wrote ${duration(Date.now() - each.since)} ago${at === 0 ? ' · the first' : ''}`))) : h('span', { className: 'soft' }, 'it has ended meanwhile, or you may not describe it'))],
    ], held.partitions) : message('Nothing is held back: every partition is stable up to its high watermark.'),
    held.count > held.partitions.length ? message(`${number(held.partitions.length)} of ${number(held.count)} partitions are shown, those that hold back most.`, 'warn') : null,
    held.asked < held.known ? message(`The first ${number(held.asked)} of ${number(held.known)} partitions were asked for.`, 'warn') : null,
  ];
}

export async function transactionPage(at) {
  const { content, parts, signal } = at;
  if (parts[0] === '-' && parts[1] === 'held') { await transactionsPage(at); return; }
  const [name] = parts;
  const one = await get('transaction', { name }, signal);
  show(content, h('p', { className: 'small' }, link('#/transactions', 'Transactions'), ' /'), h('h1', null, name),
    facts([['State', stateTag(one.state)], one.start >= 0 && ['Began', time(one.start)], one.start >= 0 && ['Open for', age(one.start)], ['Timeout', duration(one.timeout)],
      ['Producer', `${one.producer}, epoch ${one.epoch}`], ['Coordinator', one.coordinator]]),
    one.state === 'Ongoing' && one.start >= 0 && Date.now() - one.start > one.timeout ? message('It is open for longer than its timeout: the coordinator will abort it.', 'warn') : null,
    changeButton('End it by force', () => endTransaction(name, () => transactionPage(at).catch(() => {})), 'danger'),
    h('h2', null, 'What it holds back'), table([
      ['Partition', each => partitionLink(each.topic, each.partition, each.start)], ['Begins at', each => number(each.start), 'n'],
      ['Last stable', each => number(each.lastStable), 'n'], ['High watermark', each => number(each.latest), 'n'],
      ['Held back', each => (each.start === null ? '–' : number(each.latest - each.lastStable)), 'n'],
      ['Why', each => (each.start === null ? h('span', { className: 'soft' }, 'it has written nothing here yet, or its marker is written') : each.isFirst ? tag('this is the oldest open transaction', 'warn') : h('span', { className: 'soft' }, 'an older transaction is open too: that one comes first'))],
    ], one.held, 'It has no partitions: nothing waits for it.'),
    h('h2', null, 'What it went through'), one.explain === null ? h('p', { className: 'soft' }, 'This broker keeps no history of its transactions.')
      : one.explain === '' ? h('p', { className: 'soft' }, "Nothing has happened to it since the broker's start.") : h('pre', null, one.explain.replace(/^\d{13}(?= )/gm, ms => time(Number(ms)))));
}

export async function producersView(body, topic, { signal }) {
  const found = await get('producers', { topic: topic.name }, signal);
  show(body, table([
    ['Partition', one => one.partition, 'n'], ['Producer', one => one.producer, 'n'], ['Epoch', one => one.epoch, 'n'], ['Last sequence', one => number(one.sequence), 'n'],
    ['Last wrote', one => time(one.last), 'keep'], ['Open transaction from', one => (one.start >= 0 ? tag(number(one.start), 'warn') : '–'), 'n'],
  ], found.producers, 'The partitions remember no idempotent or transactional producers.'),
  found.count > found.producers.length ? message(`${found.producers.length} of ${found.count} producers are shown.`) : null);
}
