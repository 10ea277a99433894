# SPDX-License-Identifier: Apache-2.0
"""How much memory and how many threads a daemon takes, and whether that is within its bounds."""
import os

from volume import Failure

# Besides the budgets: the program, RocksDB, the allocator's slack, and payloads in the engine, of
# which each CPU has some. A mount that computes on a GPU also has CUDA's driver and the page-locked
# memory through which payloads go.
OVERHEAD_BYTES = (234 + 8 * (os.cpu_count() or 1)) << 20
OVERHEAD_OF_CUDA_BYTES = 256 << 20
# Requests, commits, flushing, compaction, the control socket, RocksDB; and the engine and read-ahead,
# which have threads for each CPU.
THREADS_MAX = 44 + 2 * (os.cpu_count() or 1)
# Over io_uring, which a mount takes wherever the machine's switch is on when it begins: a thread and
# a ring for each of a CPU's places, and one thread for CPUs that the mount may not run on.
RINGS_PER_CPU_MAX = 16


def status_of(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def peak_bytes(pid):
    return int(status_of(pid)["VmHWM"].split()[0]) * 1024


def reset_peak(pid):
    """From now on peak_bytes() is of what comes (proc(5), clear_refs)."""
    with open(f"/proc/{pid}/clear_refs", "w", encoding="ascii") as f:
        f.write("5")


def resident_bytes(pid):
    return int(status_of(pid)["VmRSS"].split()[0]) * 1024


def has_mapped(pid, names):
    with open(f"/proc/{pid}/maps", encoding="utf-8") as f:
        return any(name in line for line in f for name in names)


def is_instrumented(pid):
    """A sanitizer's shadow counts as memory: bounds say nothing there."""
    return has_mapped(pid, ("libasan", "libtsan", "shadow"))


def ring_count(pid):
    folder = f"/proc/{pid}/fd"
    count = 0
    for name in os.listdir(folder):
        try:
            count += os.readlink(os.path.join(folder, name)) == "anon_inode:[io_uring]"
        except FileNotFoundError:
            pass  # closed meanwhile
    return count


def check_threads(pid):
    threads, rings = int(status_of(pid)["Threads"]), ring_count(pid)
    if threads > THREADS_MAX + rings:
        raise Failure(f"the daemon has {threads} threads, {rings} of them for io_uring")
    if rings > RINGS_PER_CPU_MAX * (os.cpu_count() or 1) + 1:
        raise Failure(f"the daemon has {rings} rings for {os.cpu_count()} CPUs")


def check_memory(pid, budget_bytes):
    """The most that it ever took; returned. Its threads are within their bounds, too."""
    check_threads(pid)
    peak = peak_bytes(pid)
    overhead = OVERHEAD_BYTES + OVERHEAD_OF_CUDA_BYTES * has_mapped(pid, ("libcuda.so",))
    if peak > budget_bytes + overhead and not is_instrumented(pid):
        raise Failure(f"the daemon took {peak >> 20} MiB: its budgets are {budget_bytes >> 20} MiB, "
                      f"and {overhead >> 20} more are allowed")
    return peak
