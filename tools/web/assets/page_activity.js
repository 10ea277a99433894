// SPDX-License-Identifier: Apache-2.0
// Every job of this server, the running ones first.
import { h } from './dom.js';
import { t } from './i18n.js';
import { jobList } from './jobs.js';
import { pageHead } from './ui.js';

export function activityPage() {
  const list = jobList({ recent: 10 });
  return { node: h('div.page', pageHead(t('activity.title'), t('activity.text')), list.node), stop: list.stop };
}
