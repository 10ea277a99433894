// SPDX-License-Identifier: Apache-2.0
// Live: a mounted volume second by second, with 10 minutes of history that the server keeps.
import { get } from './api.js';
import { latencySpan, TimeChart } from './chart.js';
import { fill, h, reconcile, setPart, setText } from './dom.js';
import { field, select } from './fields.js';
import { bytes, clock, dateTime, microseconds, number, percent, rate, ratio } from './format.js';
import { t, tOr } from './i18n.js';
import { facts } from './results.js';
import { volumes } from './store.js';
import { button, empty, errorNote, pageHead, skeleton } from './ui.js';
import { isMounted, nameOfVolume } from './volume_state.js';

const historySeconds = 600;
const operationsShown = 10;
const messagesShown = 200;
const levels = new Set(['debug', 'info', 'warning', 'error', 'critical']);

function meanOfDevices(sample) {
  const shares = (sample.devices ?? []).map((one) => one.busy_share).filter(Number.isFinite);
  return shares.length ? shares.reduce((a, b) => a + b, 0) / shares.length : null;
}

export function livePage(wanted) {
  const body = h('div', h('section.card', skeleton(5)));
  const choice = h('div.live-choice');
  const node = h('div.page', pageHead(t('live.title'), t('live.text'), choice), body);
  let view = null;
  let shownNames = '';
  const stop = volumes.subscribe((list, error) => {
    if (error && !list) return fill(body, errorNote(error));
    const mounted = list.filter((volume) => isMounted(volume) && volume.is_mine !== false);
    const chosen = mounted.find((volume) => volume.mountpoint === (wanted ?? view?.mountpoint)) ?? mounted[0];
    const names = mounted.map((volume) => volume.mountpoint).join('\n');
    if (names !== shownNames) {
      shownNames = names;
      const control = select(mounted.map((volume) => ({ value: volume.mountpoint, label: nameOfVolume(volume) })), chosen?.mountpoint, (mountpoint) => {
        location.hash = `#/live/${encodeURIComponent(mountpoint)}`;
      });
      fill(choice, mounted.length > 1 ? field(t('live.volume'), control) : null);
    }
    if (view?.mountpoint === chosen?.mountpoint && view) return null;
    view?.stop();
    view = null;
    if (chosen) fill(body, (view = new LiveView(chosen)).node);
    else fill(body, h('section.card', empty('live', t('live.none'), t('live.none.text'), h('a.button.primary', { href: '#/volumes' }, t('nav.volumes')))));
    return null;
  });
  return { node, stop: () => {
    stop();
    view?.stop();
  } };
}

class LiveView {
  constructor(volume) {
    this.mountpoint = volume.mountpoint;
    this.samples = [];
    const tile = (name) => {
      const value = h('div.value', '–');
      const more = h('div.small.muted');
      return { node: h('section.card.figure-tile', h('h2.small.muted', t(`live.${name}`)), value, more), value, more };
    };
    this.tiles = Object.fromEntries(['write', 'stored', 'requests', 'cache'].map((name) => [name, tile(name)]));
    const perSecond = (name) => (sample) => (sample.operations ? sample.operations[name]?.per_second ?? 0 : null);
    const mean = (name) => (sample) => sample.operations?.[name]?.mean_us ?? null;
    const chart = (name, format, base, least, series) => new TimeChart({ label: t(`live.${name}`), format, base, least, series });
    // The daemon counts the bytes that are written; of reads it counts the requests.
    this.charts = {
      throughput: chart('throughput', rate, 2, 1024, [{ label: t('live.write'), of: (sample) => sample.write_rate }, { label: t('live.stored'), of: (sample) => sample.stored_rate, second: true }]),
      requests: chart('requests', (value) => number(value), 10, 10, [{ label: t('live.reads'), of: perSecond('read') }, { label: t('live.writes'), of: perSecond('write'), second: true }]),
      waiting: chart('waiting', microseconds, 10, 100, [{ label: t('live.reads'), of: mean('read') }, { label: t('live.writes'), of: mean('write'), second: true }]),
      devices: chart('devices', percent, 10, 1, [{ label: t('live.devices.mean'), of: meanOfDevices }]),
      cpu: chart('cpu', (value) => (Number.isFinite(value) ? number(value, value < 10 ? 2 : 0) : '–'), 10, 1, [{ label: t('live.cores'), of: (sample) => sample.cpu_share }]),
    };
    this.fault = h('div');
    this.latency = h('div.table-frame');
    this.more = button('', () => {
      this.showsAll = !this.showsAll;
      this.latencyKey = '';
      this.drawLatest(this.latest);
    }, { kind: 'quiet.small' });
    this.more.hidden = true; // until the first answer says how many operations there are
    this.space = h('div.stack.tight');
    this.lines = h('ol');
    this.log = h('div.log', { role: 'log', 'aria-label': t('live.log'), tabindex: '0' }, this.lines);
    this.noLog = h('p.muted', t('live.log.none'));
    this.lastMessage = 0;
    this.devices = h('ul.stack.tight');
    this.deviceCard = h('section.card', { hidden: true, 'data-card': 'devices' }, h('h2', t('live.devices')), h('p.muted.small', t('live.devices.hint')), this.charts.devices.node, this.devices);
    this.engine = h('div');
    this.messages = h('div');
    const card = (title, hint, ...content) => h('section.card', h('h2', title), hint ? h('p.muted.small', hint) : null, content);
    this.node = h('div.stack', this.fault, h('div.grid-4', Object.values(this.tiles).map((one) => one.node)),
      h('div.grid-2', ['throughput', 'requests', 'waiting', 'cpu'].map((name) => card(t(`live.${name}`), null, this.charts[name].node))), this.deviceCard,
      h('div.columns', h('div.stack', card(t('live.latency'), t('live.latency.hint'), [this.latency, this.more]), card(t('live.log'), t('live.log.hint'), this.noLog, this.log)),
        h('div.stack', card(t('live.space'), null, this.space), card(t('live.engine'), null, this.engine), card(t('live.messages'), null, this.messages))));
    this.poll();
  }

  async poll() {
    const since = this.samples[this.samples.length - 1]?.time;
    try {
      const found = await get('/api/live', { mountpoint: this.mountpoint, since, log_after: this.lastMessage });
      if (this.isStopped) return;
      const fresh = found.samples.filter((sample) => since === undefined || sample.time > since);
      this.samples = [...this.samples, ...fresh].filter((sample) => found.now - sample.time <= historySeconds);
      this.fault.replaceChildren();
      this.draw(found);
    } catch (error) {
      if (this.isStopped) return;
      fill(this.fault, errorNote(error));
      if (error.status === 401) return;
    }
    this.timer = setTimeout(() => this.poll(), document.hidden ? 5000 : 1000);
  }

  draw({ now, latest, log }) {
    const last = this.samples[this.samples.length - 1];
    for (const chart of Object.values(this.charts)) chart.set(this.samples, now);
    const mean = (key) => {
      const values = this.samples.slice(-60).map((sample) => sample[key]).filter(Number.isFinite);
      return values.length ? values.reduce((a, b) => a + b, 0) / values.length : null;
    };
    const show = (name, value, more) => {
      setText(this.tiles[name].value, value);
      setText(this.tiles[name].more, more);
    };
    show('write', rate(last?.write_rate), t('live.mean', { value: rate(mean('write_rate')) }));
    show('stored', rate(last?.stored_rate), t('live.mean', { value: rate(mean('stored_rate')) }));
    show('requests', number(last?.requests_per_second), t('live.mean', { value: number(mean('requests_per_second')) }));
    show('cache', percent(last?.cache_hit_share), t('live.cached', { size: bytes(latest?.cached_bytes) }));
    this.drawDevices(last?.devices ?? []);
    this.addMessages(log ?? []);
    if (latest) this.drawLatest(latest);
  }

  drawDevices(list) {
    this.deviceCard.hidden = !list.length;
    reconcile(this.devices, list, (one) => `${one.name} ${one.number}`, (one) => {
      const bar = h('span');
      const value = h('span.number.muted.small');
      const node = h('li.stack.tight', { 'data-device': String(one.number) }, h('div.row.apart', h('span', `${one.name} ${one.number}`), value), h('div.meter', { 'aria-hidden': 'true' }, bar));
      return { node, update: (now) => {
        setPart(bar, now.busy_share ?? 0);
        setText(value, t('live.devices.value', { share: percent(now.busy_share), rate: rate(now.input_rate) }));
      } };
    });
  }

  // The newest message is the last. The view follows it unless the user has scrolled away.
  addMessages(list) {
    const fresh = list.filter((message) => message.number > this.lastMessage);
    if (fresh.length) {
      const follows = this.log.scrollTop + this.log.clientHeight >= this.log.scrollHeight - 8;
      for (const message of fresh) {
        this.lines.append(h('li', h('time', { datetime: new Date(message.time * 1000).toISOString(), title: dateTime(message.time) }, clock(message.time)),
          h(`span.${levels.has(message.level) ? message.level : 'info'}`, tOr(`live.level.${message.level}`, message.level)), h('span', message.text)));
      }
      this.lastMessage = fresh[fresh.length - 1].number;
      while (this.lines.childElementCount > messagesShown) this.lines.firstElementChild.remove();
      if (follows) this.log.scrollTop = this.log.scrollHeight;
    }
    this.log.hidden = !this.lines.childElementCount;
    this.noLog.hidden = !this.log.hidden;
  }

  drawLatest(latest) {
    this.latest = latest;
    const all = Object.entries(latest.requests?.operations ?? {}).filter(([, one]) => one.count).sort(([, a], [, b]) => b.count - a.count);
    const operations = this.showsAll ? all : all.slice(0, operationsShown);
    this.more.hidden = all.length <= operationsShown;
    setText(this.more, t(this.showsAll ? 'live.fewer' : 'live.more', { n: all.length - operationsShown }));
    const key = operations.map(([name, one]) => `${name}${one.count}`).join();
    if (key !== this.latencyKey) {
      this.latencyKey = key;
      fill(this.latency, operations.length ? h('table', h('thead', h('tr', h('th', { scope: 'col' }, t('live.operation')), h('th.number', { scope: 'col' }, t('live.count')),
        ['p50', 'p99'].map((name) => h('th.number', { scope: 'col' }, t(`live.${name}`))), h('th.wide-only', { scope: 'col' }, t('live.scale')))),
      h('tbody', operations.map(([name, one]) => h('tr', h('th', { scope: 'row' }, h('code', name)), h('td.number', number(one.count)),
        h('td.number', microseconds(one.p50_ns / 1000)), h('td.number', microseconds(one.p99_ns / 1000)), h('td.bar-cell.wide-only', latencySpan(one)))))) : h('p.muted', t('live.no_requests')));
    }
    this.drawSpace(latest);
    const { engine = {} } = latest;
    const onDevices = engine.input_bytes ? (engine.cuda_input_bytes ?? 0) / engine.input_bytes : null;
    fill(this.engine, facts([[t('live.backend'), engine.backend], [t('live.engine_in'), bytes(engine.input_bytes)], [t('live.engine_gpu'), percent(onDevices)],
      [t('live.engine_failed'), engine.failed_message_count ? number(engine.failed_message_count) : null]]));
    const codes = Object.entries(latest.requests?.errors ?? {}).sort(([, a], [, b]) => b - a).slice(0, 8);
    fill(this.messages, facts([[t('live.health'), latest.health], [t('live.transport'), latest.transport],
      [t('live.compaction'), latest.compaction?.holds_writers ? t('live.holds_writers') : latest.compaction?.state],
      [t('live.answers'), codes.map(([name, count]) => `${name} ${number(count)}`).join(', ')]]));
  }

  drawSpace(latest) {
    const { segments = {} } = latest;
    const stored = segments.stored_bytes || 0;
    const part = (kind, value) => {
      const node = h(`span${kind}`);
      setPart(node, stored ? value / stored : 0);
      return node;
    };
    const codecs = Object.entries(latest.codecs ?? {});
    fill(this.space, h('div.meter', { role: 'img', 'aria-label': `${t('live.live')} ${bytes(segments.live_bytes)}, ${t('live.dead')} ${bytes(segments.dead_bytes)}` },
      part('', segments.live_bytes ?? 0), part('.second', segments.dead_bytes ?? 0)),
    h('div.row', h('span.key', `${t('live.live')} ${bytes(segments.live_bytes)}`), h('span.key.second', `${t('live.dead')} ${bytes(segments.dead_bytes)}`)),
    facts([[t('live.data'), bytes(latest.data_bytes)], [t('live.ratio'), ratio(latest.ratio)], [t('live.dirty'), bytes(latest.dirty_bytes)],
      ...codecs.map(([name, one]) => [t('live.by_codec', { name }), `${bytes(one.stored_bytes)} · ${ratio(one.ratio)}`])]));
  }

  stop() {
    this.isStopped = true;
    clearTimeout(this.timer);
    for (const chart of Object.values(this.charts)) chart.stop();
  }
}
