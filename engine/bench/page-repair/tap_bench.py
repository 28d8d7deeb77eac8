"""A benchmark that is a module's TAP tests, run longer and on the release engine."""
import argparse
import shutil
import signal
import sys

from instance import BenchError, engine_user, prefix_of, private_directory
from pair import print_figures
from report import host_words, write_json
from tap import run_tap


class Amount:
    """How long: the option that says it, its values, the variable that tells the test."""

    def __init__(self, option, short, usual, variable):
        self.option, self.short, self.usual, self.variable = option, short, usual, variable


def tap_bench(name, description, amount, tests, figures_of):
    """Runs tests of shared_server, named by their files, each with variables that it has besides when the run is not short. Prints
    `figures_of(amount, the results of all, the lines of failed checks)`, and ends the program where something went wrong."""
    parser = argparse.ArgumentParser(prog=f'./floe bench {name}', description=description.split('\n')[0])
    parser.add_argument('--short', action='store_true', help=f'{amount.short:,} {amount.option} instead of {amount.usual:,}')
    parser.add_argument(f'--{amount.option}', type=int, help='how many')
    parser.add_argument('--dispatchers', type=int, metavar='N', help='with so many dispatchers')
    parser.add_argument('--seed', type=int, help='repeats the run with this seed')
    parser.add_argument('--json', metavar='FILE', help='write the figures to FILE')
    parser.add_argument('--directory', default='/var/tmp', help='where the private instances live (default %(default)s)')
    options = parser.parse_args()
    wanted = getattr(options, amount.option)
    if wanted is None:
        wanted = amount.short if options.short else amount.usual
    if wanted < 1:
        parser.error(f'--{amount.option} must be 1 or more')
    environment = {amount.variable: str(wanted)}
    if options.dispatchers is not None:
        environment['FLOE_TEST_DISPATCHERS'] = str(options.dispatchers)
    if options.seed is not None:
        environment['FLOE_TEST_SEED'] = str(options.seed)

    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        user, prefixes = engine_user(), (prefix_of('release'), prefix_of('assert'))
        results, failed = {}, []
        for test, more in tests.items():
            directory = private_directory(options.directory)
            try:
                found, checks = run_tap(prefixes, user, directory, f'shared_server/{test}',
                                        environment if options.short else {**environment, **more}, name)
            finally:
                shutil.rmtree(directory, ignore_errors=True)
            results.update(found)
            failed += checks
        figures = figures_of(wanted, results, failed)
        print_figures(figures)
        if options.json:
            write_json(options.json, name, host_words(options.directory), figures, {**results, 'failed': failed})
    except BenchError as error:
        print(f'floe: error: {error}', file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
