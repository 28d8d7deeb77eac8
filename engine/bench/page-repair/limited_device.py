"""A device that writes no faster than it is allowed to: a file behind a loop device, throttled by the kernel (cgroups)."""
import os
import shutil
import stat
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'bulk-io'))

from instance import BenchError, run  # noqa: E402


class CannotLimit(BenchError):
    """Here no device can be limited; the words say why."""


class Version1:
    """The limit is set on the root group: only there does version 1 see what the kernel's write-back and the loop device's
    threads write, which is most of what a checkpoint is."""

    FILE = '/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device'

    @classmethod
    def here(cls):
        return cls() if os.path.exists(cls.FILE) else None

    def limit(self, number, rate):
        with open(self.FILE, 'w', encoding='ascii') as file:
            file.write(f'{number} {rate}\n')

    def lift(self, number):
        self.limit(number, 0)


class Version2:
    """A group of our own with a limit in io.max. This process goes into it, and with it every instance that it starts; each
    device but the limited one is as fast as ever. Write-back counts for the group that has made a page dirty, which takes the
    memory controller, too; the file system's journal is written by the kernel itself and is not counted.

    Written by the kernel's documentation and not yet run: the machines at hand had version 1. Whether the limit holds is
    proved at every use, as with version 1, so a machine where it does not is refused, not measured.
    """

    def __init__(self, root):
        self.root, self.group, self.home = root, None, None

    @classmethod
    def here(cls):
        with open('/proc/self/mounts', encoding='utf-8') as file:
            for line in file:
                _, point, kind = line.split()[:3]
                if kind == 'cgroup2':
                    with open(os.path.join(point, 'cgroup.controllers'), encoding='ascii') as controllers:
                        if {'io', 'memory'} <= set(controllers.read().split()):
                            return cls(point)
        return None

    def _write(self, path, words):
        with open(path, 'w', encoding='ascii') as file:
            file.write(words)

    def limit(self, number, rate):
        with open('/proc/self/cgroup', encoding='utf-8') as file:
            path = next(line for line in file if line.startswith('0::'))[3:].strip()
        self._write(os.path.join(self.root, 'cgroup.subtree_control'), '+io +memory')
        self.group = tempfile.mkdtemp(prefix='floe-limited-', dir=self.root)
        self._write(os.path.join(self.group, 'io.max'), f'{number} wbps={rate}')
        self._write(os.path.join(self.group, 'cgroup.procs'), str(os.getpid()))
        self.home = os.path.join(self.root, path.lstrip('/'))

    def lift(self, _):
        if self.home:
            self._write(os.path.join(self.home, 'cgroup.procs'), str(os.getpid()))
        if not self.group:
            return
        # What we have started has ended, but may not have been reaped
        deadline = time.monotonic() + 10
        while True:
            try:
                os.rmdir(self.group)
                return
            except OSError as error:
                if time.monotonic() > deadline:
                    print(f'floe: warning: could not remove "{self.group}": {error}', file=sys.stderr)
                    return
                time.sleep(0.05)


class LimitedDevice:
    """`with LimitedDevice(parent, megabytes) as directory`: an ext4 of its own, at most so many MB/s of writes."""

    def __init__(self, parent, megabytes_per_second, size='48G'):
        self.parent, self.limit, self.size = parent, megabytes_per_second * 1000 * 1000, size
        self.room = self.device = self.number = self.throttle = None
        self.mounted = False

    def __enter__(self):
        if os.getuid() != 0:
            raise CannotLimit('could not limit a device: it takes root')
        self.throttle = Version1.here() or Version2.here()
        if not self.throttle:
            raise CannotLimit('could not limit a device: there is neither the blkio controller of cgroup version 1 nor io and memory of version 2')
        try:
            self.room = tempfile.mkdtemp(prefix='floe-limited-', dir=self.parent)
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
            self.throttle.limit(self.number, self.limit)
            self._prove(directory)
            return directory
        except BaseException as error:
            self.__exit__()
            if isinstance(error, (BenchError, OSError)) and not isinstance(error, CannotLimit):
                raise CannotLimit(f'could not limit a device: {error}') from error
            raise

    def __exit__(self, *_):
        if self.number:
            self.throttle.lift(self.number)
        if self.mounted:
            run(['umount', os.path.join(self.room, 'mount')])
        if self.device:
            run(['losetup', '--detach', self.device])
        if self.room:
            shutil.rmtree(self.room)

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
            raise CannotLimit(f'could not limit a device: it wrote {rate / 1e6:.0f} MB/s instead of {self.limit / 1e6:.0f}')
