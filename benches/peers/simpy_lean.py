"""A step in SimPy, as lean as it goes: one Timeout for each operation and each message, and callbacks.

How to run: see `run.py`.
"""

from collections import deque

from simpy import Environment

from case import main


class Rank:
    """Runs its operations in order, each as soon as its message is here."""

    __slots__ = ("step", "ops", "op")

    def __init__(self, step, ops):
        self.step = step
        self.ops = iter(ops)
        self.take()

    def take(self):
        self.op = op = next(self.ops, None)
        if op is None:
            return
        if op.needs is None or self.step.is_here[op.needs]:
            self.run()
        else:
            self.step.waiting[op.needs] = self

    def run(self):
        self.step.env.timeout(self.op.row.duration).callbacks.append(self.ended)

    def ended(self, _):
        op = self.op
        if op.makes is not None:
            self.step.links[op.row.link].send(op)
        self.take()


class Link:
    """Carries one message at a time, first come, first served."""

    __slots__ = ("step", "queue")

    def __init__(self, step):
        self.step = step
        self.queue = deque()

    def send(self, op):
        self.queue.append(op)
        if len(self.queue) == 1:
            self.start(op)

    def start(self, op):
        self.step.env.timeout(op.row.time).callbacks.append(self.arrived)

    def arrived(self, _):
        queue = self.queue
        number = queue.popleft().makes
        if queue:
            self.start(queue[0])
        self.step.is_here[number] = True
        rank = self.step.waiting[number]
        if rank is not None:
            rank.run()


class Step:
    """The clock, the links, and which messages are here or waited for."""

    __slots__ = ("env", "links", "is_here", "waiting")

    def __init__(self, case):
        self.env = Environment()
        self.links = [Link(self) for _ in case.links]
        self.is_here = bytearray(1 + case.messages)
        self.waiting = [None] * (1 + case.messages)


def simulate(case, ranks):
    """The makespan in nanoseconds."""
    step = Step(case)
    for ops in ranks:
        Rank(step, ops)
    step.env.run()
    return step.env.now


class Memory:
    """What a rank holds, as the level after all that happens at an instant."""

    __slots__ = ("level", "instants", "levels")

    def __init__(self):
        self.level = 0
        self.instants = [0]
        self.levels = [0]

    def change(self, now, by):
        self.level += by
        if self.instants[-1] == now:
            self.levels[-1] = self.level
        else:
            self.instants.append(now)
            self.levels.append(self.level)


class RecordingRank(Rank):
    """Keeps the start and end of every operation, and what the rank holds."""

    __slots__ = ("memory", "spans", "began")

    def __init__(self, step, ops, memory):
        self.memory = memory
        self.spans = []
        super().__init__(step, ops)

    def run(self):
        self.began = now = self.step.env.now
        row = self.op.row
        self.memory.change(now, max(row.saved, 0) - row.needed)
        super().run()

    def ended(self, event):
        now = self.step.env.now
        row = self.op.row
        self.spans.append((self.op, self.began, now))
        self.memory.change(now, min(row.saved, 0) + row.sent)
        super().ended(event)


class RecordingLink(Link):
    """Keeps the start and end of every message, and what its ranks hold for it."""

    __slots__ = ("sender", "receiver", "spans", "began")

    def __init__(self, step, sender, receiver):
        super().__init__(step)
        self.sender = sender
        self.receiver = receiver
        self.spans = []

    def start(self, op):
        self.began = now = self.step.env.now
        self.receiver.change(now, op.row.sent)
        super().start(op)

    def arrived(self, event):
        now = self.step.env.now
        op = self.queue[0]
        self.spans.append((op, self.began, now))
        self.sender.change(now, -op.row.sent)
        super().arrived(event)


def record(case, ranks):
    """The makespan in nanoseconds and the ranks' peaks in bytes, with every span and the curves of memory kept."""
    step = Step(case)
    memories = [Memory() for _ in ranks]
    step.links = [RecordingLink(step, memories[sender], memories[receiver]) for sender, receiver in case.links]
    kept = [RecordingRank(step, ops, memory) for ops, memory in zip(ranks, memories)]
    step.env.run()
    assert sum(len(one.spans) for one in kept + step.links) == case.events
    return step.env.now, [max(memory.levels) for memory in memories]


if __name__ == "__main__":
    main(simulate, __doc__, record)
