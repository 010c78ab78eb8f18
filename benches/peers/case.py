"""A step of the benches, as pipestep exports it, and how a peer that simulates it is timed."""

import argparse
import gc
import json
import statistics
import time
from dataclasses import dataclass
from itertools import chain, islice
from typing import NamedTuple, Optional


@dataclass(slots=True)
class Row:
    """What the forwards or backwards of a stage have in common. Times in nanoseconds, sizes in bytes."""

    duration: int
    saved: int
    """What a forward keeps from its start on, and a backward frees at its end (below zero)."""
    needed: int
    """The size of the message that each waits for."""
    sent: int
    """The size of the message that each sends."""
    time: int
    """How long that message is on its link."""
    link: Optional[int]
    """The number of that link, one for each ordered pair of ranks."""


class Op(NamedTuple):
    """An operation of a rank. That a backward needs its own forward is left to the rank's order."""

    row: Row
    needs: Optional[int]
    """The number of the message it waits for."""
    makes: Optional[int]
    """The number of the message it sends."""


class Case:
    """A step: its lengths and sizes, the orders that pipestep runs, and what it finds."""

    def __init__(self, exported):
        self.events = exported["events"]
        self.makespan = exported["makespan_ns"]
        self.peaks = exported["peak_bytes"]
        self.orders = exported["orders"]
        self.ranks = exported["ranks"]
        self.micro_batches = exported["micro_batches"]
        self.chunks = exported["chunks"]
        self.stages = exported["stages"]
        self.messages = 2 * len(self.stages) * self.micro_batches
        self.links = {}
        """By its two ranks: the number of each link."""
        self.rows = {(kind, at): self.row(kind, at) for kind in "FB" for at in range(len(self.stages))}

    def row(self, kind, at):
        cost, before, after = self.stages[at][kind], self.stage_before(kind, at), self.stage_after(kind, at)
        row = Row(cost["duration_ns"], cost["saved_bytes"] * (1 if kind == "F" else -1), 0, 0, 0, None)
        if before is not None:
            row.needed = self.stages[before][kind]["message_bytes"]
        if after is not None:
            row.sent, row.time = cost["message_bytes"], cost["message_ns"]
            row.link = self.links.setdefault((at % self.ranks, after % self.ranks), len(self.links))
        return row

    def stage_after(self, kind, at):
        after = at + 1 if kind == "F" else at - 1
        return after if 0 <= after < len(self.stages) else None

    def stage_before(self, kind, at):
        return self.stage_after("B" if kind == "F" else "F", at)

    def build(self):
        """The operations of each rank in order: 1F1B, or Megatron's interleaved 1F1B."""
        return [list(self.order(rank)) for rank in range(self.ranks)]

    def order(self, rank):
        """So many forwards ahead, then one forward and one backward in turn, then the backwards that are left."""
        ahead = self.ranks - 1 - rank
        if self.chunks > 1:
            ahead = 2 * ahead + (self.chunks - 1) * self.ranks
        forwards, backwards = self.passes("F", rank), self.passes("B", rank)
        return chain(islice(forwards, ahead), chain.from_iterable(zip(forwards, backwards)), backwards)

    def passes(self, kind, rank):
        """The forwards or backwards of a rank: as many micro-batches as there are ranks through each chunk in
        turn, last chunk first for a backward."""
        stages = range(rank, len(self.stages), self.ranks)
        if kind == "B":
            stages = stages[::-1]
        together = self.ranks if self.chunks > 1 else self.micro_batches
        for first in range(0, self.micro_batches, together):
            for at in stages:
                row, needs, makes = self.rows[kind, at], None, None
                if self.stage_before(kind, at) is not None:
                    needs = self.message(kind, at)
                if self.stage_after(kind, at) is not None:
                    makes = self.message(kind, self.stage_after(kind, at))
                for i in range(first, first + together):
                    yield Op(row, needs and needs + i, makes and makes + i)

    def message(self, kind, at):
        """The number of the first micro-batch's message to a stage; none has the number 0."""
        return 1 + ((kind == "B") * len(self.stages) + at) * self.micro_batches

    def check(self):
        """That the orders built here are those of pipestep."""
        assert all(stage["rank"] == at % self.ranks for at, stage in enumerate(self.stages))
        assert self.ranks > 1, "one rank sends no messages"
        for rank, order in enumerate(self.orders):
            read = [self.read(text) for text in order]
            assert list(self.order(rank)) == read, f"rank {rank} runs another order than in pipestep"

    def read(self, text):
        """The operation written as `3F12`: stage 3, forward, micro-batch 12."""
        kind = "F" if "F" in text else "B"
        at, i = map(int, text.split(kind))
        after = self.stage_after(kind, at)
        needs = None if self.stage_before(kind, at) is None else self.message(kind, at) + i
        makes = None if after is None else self.message(kind, after) + i
        return Op(self.rows[kind, at], needs, makes)


def main(simulate, description, record=None):
    """Times `simulate(case, ranks)`, which returns the makespan, on the case in a file; prints nanoseconds an event
    as JSON: with the ranks' orders given, with building them, and with recording everything by `record(case,
    ranks)`, which returns the ranks' peaks too."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("case", help="a file that `peers-case` wrote")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    with open(arguments.case, encoding="utf-8") as file:
        case = Case(json.load(file))
    case.check()
    gc.collect()
    gc.freeze()  # the collector need not look at the case again and again
    runs = [timed(simulate, case) for _ in range(arguments.runs)]
    results = dict(zip(("given", "built"), map(summary, zip(*runs))))
    if record is not None:
        results["recorded"] = summary([recorded(record, case) for _ in range(arguments.runs)])
    print(json.dumps(results))


def timed(simulate, case):
    """Processor time of a simulation in nanoseconds an event: with its orders given, and with building them."""
    gc.collect()
    begin = time.process_time_ns()
    ranks = case.build()
    ready = time.process_time_ns()
    makespan = simulate(case, ranks)
    end = time.process_time_ns()
    compare("makespan", makespan, case.makespan)
    return (end - ready) / case.events, (end - begin) / case.events


def recorded(record, case):
    """Processor time of a simulation that records everything, in nanoseconds an event, its orders given."""
    ranks = case.build()
    gc.collect()
    begin = time.process_time_ns()
    makespan, peaks = record(case, ranks)
    end = time.process_time_ns()
    compare("makespan", makespan, case.makespan)
    compare("peaks", peaks, case.peaks)
    return (end - begin) / case.events


def compare(what, found, expected):
    assert found == expected, f"{what}: {found} here, {expected} in pipestep"


def summary(runs):
    return {"best": min(runs), "median": statistics.median(runs)}
