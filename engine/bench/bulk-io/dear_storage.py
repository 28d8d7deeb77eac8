"""A storage on which a request is dear: see dear_storage.c."""
import os
import shutil
import struct

from instance import BenchError, run

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'dear_storage.c')
REQUEST_US = 500
BYTES_PER_SECOND = 400_000_000
KINDS = ('reads', 'writes', 'extensions')


class DearStorage:
    """The library, built in a directory, and what it has counted since the last look."""

    def __init__(self, directory, user):
        compiler = shutil.which('cc') or shutil.which('gcc')
        if not compiler:
            raise BenchError('the storage on which a request is dear needs a C compiler')
        self.library = os.path.join(directory, 'dear_storage.so')
        self.counts = os.path.join(directory, 'dear_storage.counts')
        run([compiler, '-O2', '-shared', '-fPIC', '-o', self.library, SOURCE, '-ldl'])
        with open(self.counts, 'wb') as file:
            file.write(bytes(8 * 3 * len(KINDS)))
        user.own(self.counts)
        self.last = self._read()

    def environment(self):
        """What the server's environment needs."""
        return {'LD_PRELOAD': self.library, 'FLOE_DEAR_US': str(REQUEST_US), 'FLOE_DEAR_BYTES': str(BYTES_PER_SECOND),
                'FLOE_DEAR_COUNTS': self.counts}

    def _read(self):
        with open(self.counts, 'rb') as file:
            return struct.unpack(f'{3 * len(KINDS)}Q', file.read())

    def look(self):
        """Requests, bytes and seconds of each kind since the last look."""
        now = self._read()
        since = [new - old for new, old in zip(now, self.last)]
        self.last = now
        return {kind: (since[3 * i], since[3 * i + 1], since[3 * i + 2] / 1e9) for i, kind in enumerate(KINDS)}

    def prove(self):
        """Of all requests so far: the mean milliseconds of each kind. Fails if one was cheaper than it should be."""
        means = {}
        for i, kind in enumerate(KINDS):
            requests, _, nanoseconds = self._read()[3 * i:3 * i + 3]
            if requests == 0 or nanoseconds < requests * REQUEST_US * 1000:
                raise BenchError(f'the storage was not dear: {requests} {kind} took {nanoseconds / 1e6:.0f} ms')
            means[kind] = nanoseconds / requests / 1e6
        return means
