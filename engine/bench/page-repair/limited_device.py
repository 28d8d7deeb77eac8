"""A device that writes no faster than it is allowed to: a file behind a loop device, throttled by the kernel (cgroup v1, blkio)."""
import os
import shutil
import stat
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'bulk-io'))

from instance import BenchError, run  # noqa: E402

THROTTLE = '/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device'


class LimitedDevice:
    """`with LimitedDevice(parent, megabytes) as directory`: an ext4 of its own, at most so many MB/s of writes.

    The limit is set on the root group: only there does version 1 see what the kernel's write-back and the loop device's
    threads write, which is most of what a checkpoint is.
    """

    def __init__(self, parent, megabytes_per_second, size='48G'):
        self.parent, self.limit, self.size = parent, megabytes_per_second * 1000 * 1000, size
        self.room = self.device = self.number = None
        self.mounted = False

    def __enter__(self):
        if os.getuid() != 0 or not os.path.exists(THROTTLE):
            raise BenchError('could not limit a device: it takes root and the blkio controller of cgroup version 1. '
                             'HINT:  Name a directory on a limited device of your own with --directory.')
        self.room = tempfile.mkdtemp(prefix='floe-limited-', dir=self.parent)
        try:
            image, directory = os.path.join(self.room, 'image'), os.path.join(self.room, 'mount')
            os.mkdir(directory)
            run(['truncate', '-s', self.size, image])
            self.device = run(['losetup', '--direct-io=on', '--find', '--show', image]).strip()
            run(['mkfs.ext4', '-q', '-E', 'lazy_itable_init=0,lazy_journal_init=0', self.device])
            run(['mount', '-o', 'noatime', self.device, directory])
            self.mounted = True
            os.chmod(self.room, 0o755)
            os.chmod(directory, 0o755)
            device = os.stat(self.device)
            assert stat.S_ISBLK(device.st_mode)
            self.number = f'{os.major(device.st_rdev)}:{os.minor(device.st_rdev)}'
            self._throttle(self.limit)
            self._prove(directory)
            return directory
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.number:
            self._throttle(0)
        if self.mounted:
            run(['umount', os.path.join(self.room, 'mount')])
        if self.device:
            run(['losetup', '--detach', self.device])
        if self.room:
            shutil.rmtree(self.room)

    def _throttle(self, limit):
        with open(THROTTLE, 'w', encoding='ascii') as file:
            file.write(f'{self.number} {limit}\n')

    def _prove(self, directory):
        """A limit that does not hold for buffered writes and fsync would make the figures lie."""
        block, path = bytes(1024 * 1024), os.path.join(directory, 'proof')
        count = max(self.limit // len(block) * 2, 8)
        began = time.monotonic()
        with open(path, 'wb') as file:
            for _ in range(count):
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        rate = count * len(block) / (time.monotonic() - began)
        os.unlink(path)
        if rate > 1.5 * self.limit:
            raise BenchError(f'could not limit a device: it wrote {rate / 1e6:.0f} MB/s instead of {self.limit / 1e6:.0f}')
