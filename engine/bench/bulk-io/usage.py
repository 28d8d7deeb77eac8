"""What the processes of an instance have used, those that have ended included: it decides where times vary too much."""
import os
import statistics

from instance import BenchError

TICKS = os.sysconf('SC_CLK_TCK')
# A process that ends between two looks is looked for again so often
TRIES = 100


class Usage:
    """Processor seconds, calls that read or wrote, and bytes that came from the storage or go to it."""

    def __init__(self, seconds, requests, size):
        self.seconds, self.requests, self.size = seconds, requests, size

    def __add__(self, other):
        return Usage(self.seconds + other.seconds, self.requests + other.requests, self.size + other.size)

    def __sub__(self, other):
        return Usage(self.seconds - other.seconds, self.requests - other.requests, self.size - other.size)


def _stat(pid):
    with open(f'/proc/{pid}/stat', encoding='ascii', errors='replace') as file:
        return file.read().rpartition(')')[2].split()


def children_of(parent):
    found = []
    for entry in os.listdir('/proc'):
        if not entry.isdigit():
            continue
        try:
            if int(_stat(entry)[1]) == parent:
                found.append(int(entry))
        except OSError:
            continue
    return found


def _usage(pid, ended=False):
    """Of one process, with those of its children that have ended: the kernel adds their requests and bytes by itself."""
    seconds = sum(int(field) for field in _stat(pid)[11:15 if ended else 13]) / TICKS
    with open(f'/proc/{pid}/io', encoding='ascii') as file:
        io = {name: int(value) for name, value in (line.split(': ') for line in file)}
    return Usage(seconds, io['syscr'] + io['syscw'], io['read_bytes'] + io['write_bytes'])


def usage_of(instance):
    """Since the instance was started; a difference of two says what was used in between."""
    with open(os.path.join(instance.pgdata, 'postmaster.pid'), encoding='ascii') as file:
        postmaster = int(file.readline())
    for _ in range(TRIES):
        children = children_of(postmaster)
        try:
            used = sum((_usage(pid) for pid in children), _usage(postmaster, ended=True))
        except OSError:
            continue
        if children_of(postmaster) == children:
            return used
    raise BenchError('the processes of the instance come and go too fast to be looked at')


COLUMNS = (('CPU s', lambda used: used.seconds, '.2f'), ('requests', lambda used: used.requests, '.0f'),
           ('MB', lambda used: used.size / 1e6, '.1f'))


def cells_of(rows):
    """Medians of many, as text in the order of the columns."""
    return [format(statistics.median(value(used) for used in rows), form) for _, value, form in COLUMNS]


def medians(rows):
    """Medians of many, for a file."""
    return {'cpu_seconds': round(statistics.median(used.seconds for used in rows), 3),
            'requests': statistics.median(used.requests for used in rows), 'bytes': statistics.median(used.size for used in rows)}


def ratios_of(rows, baseline):
    """By which factor the medians of `rows` are above those of `baseline`, as (word, ratio)."""
    ours, theirs = medians(rows), medians(baseline)
    return [(word, round(ours[key] / theirs[key], 3)) for word, key in (('cpu', 'cpu_seconds'), ('requests', 'requests'), ('bytes', 'bytes'))
            if theirs[key]]
