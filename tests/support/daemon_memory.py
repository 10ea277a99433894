# SPDX-License-Identifier: Apache-2.0
"""How much memory and how many threads a daemon takes, and whether that is within its bounds."""
from volume import Failure

# Beside the budgets: the program, RocksDB, payloads in the engine, the allocator's slack.
OVERHEAD_BYTES = 250 << 20
# Requests, commits, flushing, compaction, read-ahead, the control socket, the engine, RocksDB.
THREADS_MAX = 48


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def peak_bytes(pid):
    return int(status_of(pid)["VmHWM"].split()[0]) * 1024


def resident_bytes(pid):
    return int(status_of(pid)["VmRSS"].split()[0]) * 1024


def is_instrumented(pid):
    """A sanitizer's shadow counts as memory: bounds say nothing there."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return any(name in line for line in f for name in ("libasan", "libtsan", "shadow"))


def check_memory(pid, budget_bytes):
    """The most that it ever took; returned."""
    threads = int(status_of(pid)["Threads"])
    if threads > THREADS_MAX:
        raise Failure(f"the daemon has {threads} threads")
    peak = peak_bytes(pid)
    if peak > budget_bytes + OVERHEAD_BYTES and not is_instrumented(pid):
        raise Failure(f"the daemon took {peak >> 20} MiB: its budgets are {budget_bytes >> 20} MiB, "
                      f"and {OVERHEAD_BYTES >> 20} beside them are allowed")
    return peak
