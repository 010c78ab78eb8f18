#!/usr/bin/env python3
"""Times pipestep against the same steps in SimPy and prints the table of `docs/performance.md`.

    python3 -m venv /tmp/peers && /tmp/peers/bin/pip install simpy==4.1.2
    /tmp/peers/bin/python benches/peers/run.py                              # some four minutes
    /tmp/peers/bin/python benches/peers/run.py --write docs/performance.md  # and puts the table there

Python 3.10 or later. Every peer gets the same lengths, and must find the same makespan to the nanosecond (and, where it records, the same
peaks to the byte). Times are of the processor, not the clock: SimPy's the best of five runs, pipestep's the median
of five rounds.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent

SIZES = [(8, 64, 1), (16, 1024, 1), (16, 256, 4), (64, 4096, 1)]

# The bench's own names of what a sweep runs and of a run that keeps everything.
TIMES = "A: order built, times"
KEPT = "B: events, spans and memory"

# Processor time, in milliseconds, of the fastest program that others have published for simulating the same step.
# Measured once, on a like machine; none of them is run here.
PUBLISHED = {(8, 64, 1): 0.84, (16, 256, 4): 647}

BEGIN, END = "<!-- made by benches/peers/run.py -->\n", "<!-- end -->\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", metavar="FILE", help="put the table between the marks in this file")
    parser.add_argument("--runs", type=int, default=5, help="runs of each peer (5)")
    arguments = parser.parse_args()
    ours = pipestep()
    with tempfile.TemporaryDirectory() as folder:
        cases = {size: export(size, pathlib.Path(folder)) for size in SIZES}
        lean = simpy("simpy_lean.py", cases, arguments.runs)
        taught = simpy("simpy_taught.py", cases, arguments.runs)
    text = table(ours, lean, taught)
    print(text, end="")
    if arguments.write:
        write(pathlib.Path(arguments.write), text)


def pipestep():
    """By size: nanoseconds an event of each variant of the bench."""
    printed = run("cargo", "bench", "--bench", "step", "--", "--ratios")
    cases = {}
    for line in printed.splitlines():
        if head := re.match(r"p(\d+) m(\d+) v(\d+) \(\d+ events\)", line):
            variants = cases.setdefault(tuple(map(int, head.groups())), {})
        elif found := re.match(r"  (\S.*?)\s+([\d.]+) ns/event", line):
            variants[found[1]] = float(found[2])
    for size in SIZES:
        for name in (TIMES, KEPT):
            if name not in cases.get(size, {}):
                sys.exit(f"the bench printed no `{name}` for {size}: has it another name now?")
    return cases


def export(size, folder):
    """The file with a step for peers to simulate."""
    path = folder / "p{}-m{}-v{}.json".format(*size)
    path.write_text(run("cargo", "run", "--release", "--example", "peers-case", "--", *size), encoding="utf-8")
    return path


def simpy(name, cases, runs):
    """By size: what a program in SimPy took."""
    return {size: json.loads(run(sys.executable, HERE / name, case, "--runs", runs)) for size, case in cases.items()}


def run(*command):
    command = [str(word) for word in command]
    print("$", *command, file=sys.stderr)
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


def table(ours, lean, taught):
    """Markdown."""

    def took(name, of):
        return [name, *(f"{of(size):,.0f}" for size in SIZES)]

    def fine(name, of):
        return [name, *(f"{of(size):.3g}" for size in SIZES)]

    def times(name, of):
        return [name, *("" if of(size) is None else f"{of(size):,.0f}x" for size in SIZES)]

    def simulated_ms(size):
        return ours[size][TIMES] * events(size) / 1e6

    rows = [
        ["ns an event"] + [heading(size) for size in SIZES],
        ["---"] * (1 + len(SIZES)),
        took("SimPy, lean", lambda size: lean[size]["given"]["best"]),
        took("the same, order built from scratch", lambda size: lean[size]["built"]["best"]),
        took("the same, every span and memory curve", lambda size: lean[size]["recorded"]["best"]),
        took("SimPy, as taught", lambda size: taught[size]["given"]["best"]),
        took("the same, order built from scratch", lambda size: taught[size]["built"]["best"]),
        fine("pipestep A: times alone, order built from scratch", lambda size: ours[size][TIMES]),
        fine("pipestep B: event engine, every span and memory curve", lambda size: ours[size][KEPT]),
        times("**A against lean, order built**", lambda size: lean[size]["built"]["best"] / ours[size][TIMES]),
        times("A against lean, order given", lambda size: lean[size]["given"]["best"] / ours[size][TIMES]),
        times("**A against taught, order built**", lambda size: taught[size]["built"]["best"] / ours[size][TIMES]),
        times("**B against lean, all recorded**", lambda size: lean[size]["recorded"]["best"] / ours[size][KEPT]),
        times("B against lean, nothing recorded", lambda size: lean[size]["given"]["best"] / ours[size][KEPT]),
        times(
            "A against the fastest published program",
            lambda size: PUBLISHED[size] / simulated_ms(size) if size in PUBLISHED else None,
        ),
    ]
    return "".join("| " + " | ".join(row) + " |\n" for row in rows)


def heading(size):
    ranks, micro_batches, chunks = size
    return f"p {ranks}, m {micro_batches:,}" + (f", v {chunks}" if chunks > 1 else "")


def events(size):
    """Forwards, backwards and their messages."""
    ranks, micro_batches, chunks = size
    return 2 * micro_batches * (2 * ranks * chunks - 1)


def write(path, text):
    whole = path.read_text(encoding="utf-8")
    before, found, rest = whole.partition(BEGIN)
    _, ended, after = rest.partition(END)
    if not found or not ended:
        sys.exit(f"{path} lacks the marks {BEGIN.strip()} and {END.strip()}")
    path.write_text(before + BEGIN + "\n" + text + "\n" + END + after, encoding="utf-8")


if __name__ == "__main__":
    main()
