# SPDX-License-Identifier: Apache-2.0
"""What a tree of files may look like after a crash: the model that soak.py compares with.

Names: every change is one step; after a crash the names are as after some step since the last
durable one. Content: each cell of 512 bytes is as it was when the file was last durable, or as one
write, truncation or hole since made it; a cell that nothing touched since is as it was.
Files are known by their inode numbers, which a volume never hands out twice.
"""
from volume import Failure

CELL = 512


class File:
    def __init__(self, inode):
        self.inode = inode
        self.current = bytearray()
        self.durable = b""
        self.changes = []  # since durable: (start, end, bytes or None for zeros)
        self.sizes = [0, 0]  # smallest and largest since durable
        # A write failed half-way: until the file is read anew after a mount, no fsync says what
        # became of it.
        self.is_doubtful = False

    def note_size(self):
        self.sizes = [min(self.sizes[0], len(self.current)), max(self.sizes[1], len(self.current))]

    def write(self, offset, data):
        if len(self.current) < offset:
            self.zero(len(self.current), offset)
            self.current += bytes(offset - len(self.current))
        self.current[offset:offset + len(data)] = data
        self.changes.append((offset, offset + len(data), data))
        self.note_size()

    def zero(self, start, end):
        """A hole, or what lies past an end that moved."""
        if start < end:
            self.changes.append((start, end, None))

    def punch(self, start, end):
        end = min(end, len(self.current))
        if start < end:
            self.current[start:end] = bytes(end - start)
            self.zero(start, end)

    def truncate(self, size):
        old = len(self.current)
        self.zero(min(old, size), max(old, size))
        if size < old:
            del self.current[size:]
        else:
            self.current += bytes(size - old)
        self.note_size()

    def settle(self):
        if self.changes and not self.is_doubtful:
            self.adopt(bytes(self.current))

    def adopt(self, found):
        self.durable = found
        if self.current != found:
            self.current = bytearray(found)
        self.changes = []
        self.sizes = [len(found), len(found)]
        self.is_doubtful = False

    def verify(self, found, where):
        """found must be possible; from now on it is what is durable."""
        if not self.sizes[0] <= len(found) <= self.sizes[1]:
            raise Failure(f"{where}: {len(found)} bytes, expected {self.sizes[0]} to "
                          f"{self.sizes[1]} ({len(self.changes)} changes since it was durable)")
        if found != self.current and found != self.durable:
            for start in range(0, len(found), CELL):
                self.verify_cell(found, start, where)
        self.adopt(found)

    def verify_cell(self, found, start, where):
        end = min(start + CELL, len(found))
        cell = found[start:end]
        if cell == self.durable[start:end]:
            return
        touched = False
        for first, last, data in reversed(self.changes):
            if start < last and end > first:
                touched = True
                if first <= start and end <= last:
                    if data is not None and data[start - first:end - first] == cell:
                        return
        # A size may be ahead of its data.
        if touched and not any(cell):
            return
        raise Failure(f"{where}: the bytes at {start} are neither what was synced nor anything "
                      f"written since ({len(self.changes)} changes)")


class Tree:
    """Names: (inode of the folder, name) -> inode."""

    def __init__(self, root):
        self.root = root
        self.names = {}
        self.folders = {root}  # every folder there was since the last durable step
        self.files = {}        # every file there was since then, by inode
        self.durable = {}
        self.steps = []        # since then: lists of (key, inode or None)

    def step(self, *changes):
        self.steps.append(changes)
        apply(self.names, changes)

    def settle_names(self):
        self.durable = dict(self.names)
        self.steps = []
        alive = set(self.names.values())
        self.folders = {f for f in self.folders if f in alive or f == self.root}
        self.files = {inode: f for inode, f in self.files.items() if inode in alive}

    def settle(self):
        self.settle_names()
        for file in self.files.values():
            file.settle()

    def link_count(self, inode):
        return sum(1 for other in self.names.values() if other == inode)

    def verify_names(self, found):
        """found, as names is, must be one of the steps; from now on it is the durable one."""
        state = dict(self.durable)
        apart = {key for key in state.keys() | found.keys() if state.get(key) != found.get(key)}
        at = 0 if not apart else None
        for number, changes in enumerate(self.steps, 1):
            apply(state, changes)
            for key, _ in changes:
                (apart.add if state.get(key) != found.get(key) else apart.discard)(key)
            if not apart:
                at = number
        if at is None:
            raise Failure(f"the names fit none of {len(self.steps) + 1} steps; against the last: "
                          f"{[(k, self.names.get(k), found.get(k)) for k in sorted(apart)][:6]}")
        self.names = found
        self.settle_names()
        return at


def apply(names, changes):
    for key, inode in changes:
        if inode is None:
            del names[key]
        else:
            names[key] = inode
