import { get } from '/api.js';
import { changeButton, resetOffsets } from '/changes.js';
import { facts, h, link, message, number, show, table, tag } from '/dom.js';
import { choice, paged } from '/paged.js';

const GOOD = { Stable: 'good', Empty: '', Dead: 'bad' };
export const groupLink = name => link(`#/groups/${encodeURIComponent(name)}`, name);
const stateTag = state => tag(state, state in GOOD ? GOOD[state] : 'warn');
const lagCell = lag => (lag > 0 ? h('b', null, number(lag)) : number(lag));

export async function groupsPage({ content, signal }) {
  const kind = choice([['', 'all'], ['classic', 'classic'], ['consumer', 'consumer'], ['share', 'share'], ['streams', 'streams']]);
  const body = h('div');
  await paged(body, {
    size: 50, empty: 'There are no groups that you may see.', extra: [{ name: 'kind', title: 'Kind', control: kind }],
    read: async how => { const found = await get('groups', how, signal); return { total: found.total, rows: found.groups }; },
    draw: rows => table([
      ['Group', one => groupLink(one.name)], ['Kind', one => tag(one.kind)], ['State', one => stateTag(one.state)],
      ['Partitions', one => number(one.partitions), 'n hide-narrow'], ['Lag', one => lagCell(one.lag), 'n'],
    ], rows),
  });
  show(content, h('h1', null, 'Groups'), body);
}

export async function groupPage(at) {
  const { content, parts, signal } = at;
  const [name, tab = 'offsets'] = parts;
  const group = await get('group', { name }, signal);
  const isShare = group.kind === 'share';
  const body = tab === 'members' ? table([
    ['Member', one => [h('span', { className: 'mono' }, one.id), one.instance ? [' ', tag(`static ${one.instance}`, 'note')] : null]],
    ['Client', one => one.client], ['Host', one => one.host, 'hide-narrow'], ['Epoch', one => (one.epoch < 0 ? '–' : one.epoch), 'n'], ['Partitions', one => number(one.partitions), 'n'],
  ], group.members, 'The group has no members.') : table([
    ['Topic', one => link(`#/topics/${encodeURIComponent(one.topic)}`, one.topic)],
    ['Partition', one => link(`#/topics/${encodeURIComponent(one.topic)}/records?partition=${one.partition}&offset=${one.committed || 0}`, one.partition), 'n'],
    [isShare ? 'Start' : 'Committed', one => number(one.committed), 'n'], ['End', one => number(one.end), 'n'], ['Lag', one => lagCell(one.lag), 'n'],
    isShare ? null : ['Member', one => h('span', { className: 'mono' }, one.member), 'hide-narrow'],
  ].filter(Boolean), group.offsets, 'The group has no offsets.');
  show(content, h('p', { className: 'small' }, link('#/groups', 'Groups'), ' /'), h('h1', null, name),
    facts([['Kind', group.kind], ['State', stateTag(group.state)], ['Lag', number(group.lag)], ['Members', number(group.memberCount)],
      group.assignor && ['Assignor', group.assignor], group.epoch >= 0 && ['Epoch', group.epoch]]),
    ['classic', 'consumer'].includes(group.kind) && changeButton('Reset offsets', () => resetOffsets(group, () => groupPage(at).catch(() => {}))),
    h('div', { className: 'tabs' }, [['offsets', `Offsets (${number(group.partitionCount)})`], ['members', `Members (${number(group.memberCount)})`]].map(([key, title]) =>
      link(`#/groups/${encodeURIComponent(name)}/${key}`, title, key === tab ? { 'aria-current': 'page' } : {}))),
    body, group.offsets.length < group.partitionCount && tab !== 'members' ? message(`The first ${number(group.offsets.length)} partitions are shown.`) : null);
}
