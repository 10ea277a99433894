// SPDX-License-Identifier: Apache-2.0
// The 14 operations of the application in the papers (DES, AES and RSA encryption and decryption, and
// RSA key pairs, on CPU and GPU). Each link opens the form that is set up for it.
import { h } from './dom.js';
import { t } from './i18n.js';
import { engine } from './store.js';
import { named } from './ui.js';

const rows = [['encrypt', 'des'], ['decrypt', 'des'], ['encrypt', 'aes'], ['decrypt', 'aes'], ['encrypt', 'rsa'], ['decrypt', 'rsa'], ['keys', 'rsa']];

export function classicalOperations(operation, method, engineName) {
  const links = [];
  const list = h('ul.grid-2.classical', rows.map(([what, how]) => h('li.row.apart.nowrap', h('span', t(`classical.${what}.${how}`)),
    h('span.row.nowrap', ['cpu', 'cuda'].map((name) => {
      const href = what === 'keys' ? `#/keys/${name}` : `#/files/${what}/${how}/${name}`;
      const is = what === operation && how === method && name === engineName;
      const link = h('a.button.small', { href, 'aria-current': is ? 'true' : null, 'data-classical': `${what}-${how}-${name}`,
        'aria-label': `${t(`classical.${what}.${how}`)}, ${named('engine', name)}` }, named('engine', name));
      links.push([link, name]);
      return link;
    })))));
  // The links stay the same nodes: a click on one that is replaced meanwhile would be lost.
  engine().then(({ engines }) => {
    for (const [link, name] of links) {
      if (!engines.find((one) => one.name === name)?.is_available) link.title = t('classical.unavailable');
    }
  }).catch(() => {});
  return h('section.card', h('h2', t('classical.title')), h('p.muted', t('classical.text')), list);
}
