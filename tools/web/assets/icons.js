// SPDX-License-Identifier: Apache-2.0
// Line icons on a grid of 24, drawn for this page. They are decoration: labels stand next to them.
import { svg } from './dom.js';

const paths = {
  volume: 'M4 7a2 2 0 0 1 2-2h12a2 2 0 0 1 2 2v10a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM15 12h2',
  file: 'M7 3h7l5 5v11a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2V5a2 2 0 0 1 2-2zM14 3v5h5',
  folder: 'M3 7a2 2 0 0 1 2-2h4l2 2h8a2 2 0 0 1 2 2v8a2 2 0 0 1-2 2H5a2 2 0 0 1-2-2z',
  key: 'M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM11 12l9-9M16 7l3 3M13.5 9.500l2 2',
  compare: 'M5 20V10M12 20V4M19 20v-7M3 20h18',
  live: 'M3 12h4l3-7 4 14 3-7h4',
  activity: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 8v4l3 2',
  lock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 7 0v3',
  unlock: 'M6 11h12v9H6zM8.5 11V8a3.5 3.5 0 0 1 6.8-1.2',
  compress: 'M12 3v6M9.5 6.5 12 9l2.5-2.500M12 21v-6M9.5 17.5 12 15l2.5 2.500M4 12h16',
  inspect: 'M11 5a6 6 0 1 0 0 12 6 6 0 0 0 0-12zM15.5 15.5 20 20',
  plus: 'M12 5v14M5 12h14', close: 'M6 6l12 12M18 6 6 18', check: 'M5 12.5 10 17l9-10',
  warning: 'M12 4 2.8 19.500h18.400zM12 10v4.500M12 17v.1', info: 'M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM12 11v5M12 8v.1',
  up: 'M12 19V5M6 11l6-6 6 6', back: 'M19 12H5M11 6l-6 6 6 6', download: 'M12 4v11M7 10l5 5 5-5M5 20h14',
  upload: 'M12 16V4M7 9l5-5 5 5M5 20h14', eye: 'M2.5 12S6 5.5 12 5.5 21.5 12 21.5 12 18 18.5 12 18.5 2.5 12 2.5 12zM12 9.500a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z',
  copy: 'M9 9h10v11H9zM5 15V4h10', terminal: 'M4 5h16v14H4zM7.5 9.5 10 12l-2.5 2.500M12 15h4',
  repair: 'M14.5 6.500a4 4 0 0 1 5-1l-3 3 .5 2 2 .5 3-3a4 4 0 0 1-5.5 4.500L9 20l-3-3 7.5-7.500a4 4 0 0 1 1-3z',
  rotate: 'M19 8a8 8 0 0 0-14-1M5 3v4h4M5 16a8 8 0 0 0 14 1M19 21v-4h-4',
  backup: 'M5 4h14v6H5zM5 14h14v6H5zM8 7h.1M8 17h.1', print: 'M7 9V4h10v5M7 17H4V9h16v8h-3M7 14h10v6H7z',
  people: 'M9 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM3 19c0-3 2.7-5 6-5s6 2 6 5M16 5.500a3 3 0 0 1 0 5.500M18 14.500c2 .7 3 2.3 3 4.5',
  external: 'M14 4h6v6M20 4l-9 9M18 14v5a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1h5',
  trash: 'M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13', home: 'M4 11l8-7 8 7v9h-5v-6H9v6H4z', disk: 'M4 13h16v6H4zM4 13l3-8h10l3 8M16 16h.1',
};

export function icon(name) {
  return svg('svg', { class: 'icon', viewBox: '0 0 24 24', 'aria-hidden': 'true', focusable: 'false' },
    svg('path', { d: paths[name] ?? paths.info }));
}
