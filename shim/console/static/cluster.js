import { get } from '/api.js';
import { bytes, counted, facts, h, link, message, number, show, table, tag } from '/dom.js';
import { configsView } from '/configs.js';

export async function clusterPage(at) {
  const { content, parts, signal } = at;
  if (parts[0] === 'broker' && parts[1]) {
    const body = h('div');
    await configsView(body, 'broker', parts[1], at);
    show(content, h('p', { className: 'small' }, link('#/cluster', 'Cluster'), ' /'), h('h1', null, `Broker ${parts[1]}`), body);
    return;
  }
  const cluster = await get('cluster', {}, signal);
  show(content, h('h1', null, 'Cluster'),
    facts([['Id', h('span', { className: 'mono' }, cluster.id)], ['Brokers', number(cluster.brokers.length)], ['Controller', cluster.controller], ['Topics', number(cluster.topics)], ['Partitions', number(cluster.partitions)], ['APIs', cluster.apis]]),
    cluster.offline ? message(`${counted(cluster.offline, 'partition')} without a leader.`, 'bad') : null,
    cluster.underReplicated ? message(`${counted(cluster.underReplicated, 'partition')} under-replicated.`, 'warn') : null,
    h('h2', null, 'Brokers'), table([
      ['Broker', one => [link(`#/cluster/broker/${one.id}`, one.id), one.id === cluster.controller ? [' ', tag('controller', 'note')] : null]],
      ['Address', one => h('span', { className: 'mono' }, `${one.host}:${one.port}`)], ['Rack', one => one.rack || '–', 'hide-narrow'], ['Leads', one => number(one.leads), 'n'],
      ['Log directories', one => (one.disks.length ? one.disks.map(disk => h('div', { className: 'small' }, h('span', { className: 'mono' }, disk.path), disk.error ? tag(disk.error, 'bad') : disk.usable === null ? '' : ` ${bytes(disk.usable)} of ${bytes(disk.total)} free`)) : '–')],
    ], cluster.brokers),
    h('h2', null, 'Features'), table([['Feature', one => h('span', { className: 'mono' }, one[0])], ['Level', one => one[1], 'n']], Object.entries(cluster.features).sort(), 'There are none.'));
}
