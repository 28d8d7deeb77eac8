"""Figures, the table and the file."""
import json
import os
import platform
import statistics


class Figure:
    """How many times faster `ours` is than `baseline`, by the medians of their seconds."""

    def __init__(self, name, baseline, ours, goal):
        self.name = name
        self.value = round(statistics.median(baseline) / statistics.median(ours), 3)
        self.goal = goal
        self.holds = None if goal is None else self.value >= goal

    def as_dict(self):
        return {'name': self.name, 'value': self.value, 'unit': 'ratio', 'goal': self.goal, 'holds': self.holds}


def spread(times):
    """Half the distance between the slowest and the fastest, in percent of the median."""
    return 50 * (max(times) - min(times)) / statistics.median(times)


def print_table(samples, figures):
    variants = list(next(iter(samples.values())))
    print(f'{"seconds, median (spread)":26}' + ''.join(f'{variant:>18}' for variant in variants))
    for name, by_variant in samples.items():
        cells = (f'{statistics.median(times):.3f} (±{spread(times):.0f} %)'
                 for times in (by_variant[variant] for variant in variants))
        print(f'{name:26}' + ''.join(f'{cell:>18}' for cell in cells))
    print()
    print(f'{"figure":30}{"value":>8}{"goal":>8}  holds')
    for figure in figures:
        goal = '' if figure.goal is None else f'{figure.goal:.2f}'
        holds = {None: '', True: 'yes', False: 'no'}[figure.holds]
        print(f'{figure.name:30}{figure.value:>8.2f}{goal:>8}  {holds}')


def host_words(directory):
    """The machine in a few words: processors, memory, kernel, file system."""
    with open('/proc/meminfo', encoding='ascii') as file:
        memory = int(next(line for line in file if line.startswith('MemTotal')).split()[1]) / 1024 / 1024
    model = platform.machine()
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        for line in file:
            if line.startswith('model name'):
                model = line.split(':', 1)[1].strip()
                break
    return f'{os.cpu_count()} x {model}, {memory:.0f} GiB, Linux {platform.release()}, {file_system(directory)}'


def file_system(directory):
    """The type of the file system that holds the directory."""
    directory = os.path.realpath(directory)
    best = ('', 'unknown')
    with open('/proc/self/mounts', encoding='utf-8') as file:
        for line in file:
            _, point, kind = line.split()[:3]
            inside = point == '/' or directory == point or directory.startswith(point + '/')
            if inside and len(point) >= len(best[0]):
                best = (point, kind)
    return best[1]


def write_json(path, bench, host, figures, detail=None):
    report = {'bench': bench, 'host': host, 'figures': [figure.as_dict() for figure in figures]}
    if detail:
        report['detail'] = detail
    with open(path, 'w', encoding='utf-8') as file:
        json.dump(report, file, indent=2)
        file.write('\n')
