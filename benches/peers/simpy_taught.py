"""A step in SimPy, as its manual teaches: a process for each rank, a Resource for each link, a process for each
message.

How to run: see `run.py`.
"""

import simpy

from case import main


def rank(env, ops, links, arrivals):
    """Runs its operations in order, each as soon as its message is here."""
    for op in ops:
        if op.needs is not None:
            yield arrivals[op.needs]
        yield env.timeout(op.row.duration)
        if op.makes is not None:
            env.process(message(env, links[op.row.link], op.row.time, arrivals[op.makes]))


def message(env, link, duration, arrival):
    """Waits for its link, takes its time there, and arrives."""
    with link.request() as turn:
        yield turn
        yield env.timeout(duration)
    arrival.succeed()


def simulate(case, ranks):
    """The makespan in nanoseconds."""
    env = simpy.Environment()
    links = [simpy.Resource(env) for _ in case.links]
    arrivals = [env.event() for _ in range(1 + case.messages)]
    for ops in ranks:
        env.process(rank(env, ops, links, arrivals))
    env.run()
    return env.now


if __name__ == "__main__":
    main(simulate, __doc__)
