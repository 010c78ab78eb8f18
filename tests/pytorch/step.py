"""Runs one training step of each schedule file in PyTorch, one loopback process for each of its rows.

A file in PyTorch's CSV format, with or without communication, is loaded by `_PipelineScheduleRuntime._load_csv` and run on a small model, cut into
as many stages as the file names. For each file a line of JSON says

* `gradient_error`: the largest difference of a gradient to that of a plain step without a pipeline, as a share of
  the largest gradient of that parameter (arithmetic in float64);
* `order`: per rank, what ran, in order, in the file's letters; `order_kept`: whether that is what the file says;
* `seconds`: with `--sleep-ms`, the lengths of `--repeat` steps in which each F, I and W sleeps that long (so a B
  twice as long), from the first start on any rank to the last end on any rank.

    python3 step.py [--sleep-ms 50] [--repeat 5] FILE...

Needs PyTorch 2.15. Deliberately absent: simulated times, and any verdict; the caller compares.
"""

import argparse
import csv
import json
import multiprocessing.connection
import os
import re
import sys
import tempfile
import time
from datetime import timedelta

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage
from torch.distributed.pipelining.schedules import _PipelineScheduleRuntime

WIDTH = 8  # features of every layer
ROWS = 3  # samples of a micro-batch
TIMEOUT = timedelta(seconds=120)  # after which a step that waits for ever fails

# The seconds that each pass sleeps; the plain step and the checked step do not sleep.
nap = 0.0


class SleepInBackward(torch.autograd.Function):
    """The identity, whose backward sleeps: it lies on the way to one kind of gradient, and only that one pays."""

    @staticmethod
    def forward(ctx, value):
        return value.view_as(value)

    @staticmethod
    def backward(ctx, gradient):
        time.sleep(nap)
        return gradient


class Stage(torch.nn.Module):
    """Two layers. Between them lies the sleep of the input gradient, at the first one's weight that of W.

    So I sleeps once, W once and B twice. The first stage has no input gradient to stop at: its I does nothing and
    its W passes both places, which is what PyTorch makes of any first stage with more than one layer.
    """

    def __init__(self, index):
        super().__init__()
        random = torch.Generator().manual_seed(index)
        weights = torch.randn(2, WIDTH, WIDTH, dtype=torch.float64, generator=random) / WIDTH**0.5
        self.lower, self.upper = (torch.nn.Parameter(weight) for weight in weights)

    def forward(self, value):
        time.sleep(nap)
        value = torch.tanh(value @ SleepInBackward.apply(self.lower))
        return torch.tanh(SleepInBackward.apply(value) @ self.upper)


def squared_error(output, target):
    return torch.nn.functional.mse_loss(output, target)


class File:
    """A schedule file: its format, and each rank's operations, overlapped pairs as their two parts."""

    ACTION = re.compile(r"(\d+)([FBIW])(\d+)")

    def __init__(self, path):
        self.path = path
        with open(path, newline="") as text:
            rows = [[part for cell in row for part in re.split(r"[(;)]", cell) if part] for row in csv.reader(text)]
        self.order = [[part for part in row if self.ACTION.fullmatch(part)] for row in rows]
        others = {part for row in rows for part in row if not self.ACTION.fullmatch(part)}
        self.form = "compute_comms" if others - {"OVERLAP_F_B"} else "compute_only"
        actions = [self.ACTION.fullmatch(part).groups() for row in self.order for part in row]
        self.ranks = len(self.order)
        self.stages = 1 + max(int(stage) for stage, _, _ in actions)
        self.micro_batches = 1 + max(int(micro_batch) for _, _, micro_batch in actions)

    def stages_of(self, rank):
        return sorted({int(self.ACTION.fullmatch(part)[1]) for part in self.order[rank]})


def batch(file):
    """The inputs and targets of a whole step."""
    random = torch.Generator().manual_seed(1_000_003)
    shape = (2, ROWS * file.micro_batches, WIDTH)
    return torch.randn(shape, dtype=torch.float64, generator=random)


def plain_gradients(file):
    """The gradients of every stage from a step without a pipeline."""
    value, target = batch(file)
    model = [Stage(index) for index in range(file.stages)]
    for stage in model:
        value = stage(value)
    squared_error(value, target).backward()
    return [[parameter.grad for parameter in stage.parameters()] for stage in model]


def recorded(stage, order):
    """The stage, noting in `order` every pass that PyTorch makes it run."""
    forward, backward, weight = stage.forward_one_chunk, stage.backward_one_chunk, stage.backward_weight_one_chunk

    def forward_one_chunk(micro_batch, *args, **kwargs):
        order.append(f"{stage.stage_index}F{micro_batch}")
        return forward(micro_batch, *args, **kwargs)

    def backward_one_chunk(micro_batch, *args, full_backward=True, **kwargs):
        order.append(f"{stage.stage_index}{'B' if full_backward else 'I'}{micro_batch}")
        return backward(micro_batch, *args, full_backward=full_backward, **kwargs)

    def backward_weight_one_chunk(micro_batch, *args, **kwargs):
        order.append(f"{stage.stage_index}W{micro_batch}")
        return weight(micro_batch, *args, **kwargs)

    stage.forward_one_chunk = forward_one_chunk
    stage.backward_one_chunk = backward_one_chunk
    stage.backward_weight_one_chunk = backward_weight_one_chunk
    return stage


class Rank:
    """What one process holds of a file's pipeline."""

    def __init__(self, file, rank):
        self.file, self.order = file, []
        self.indices = file.stages_of(rank)
        passed = torch.empty(ROWS, WIDTH, dtype=torch.float64, requires_grad=True)
        stages = [
            recorded(
                PipelineStage(
                    Stage(index), index, file.stages, torch.device("cpu"), input_args=passed, output_args=passed
                ),
                self.order,
            )
            for index in self.indices
        ]
        self.models = [stage.submod for stage in stages]
        self.schedule = _PipelineScheduleRuntime(stages, file.micro_batches, loss_fn=squared_error)
        self.schedule._load_csv(file.path, format=file.form)

    def step(self):
        """Runs one step; returns when it began and when it ended here."""
        for model in self.models:
            model.zero_grad()
        self.order.clear()
        value, target = batch(self.file)
        inputs = [value] if 0 in self.indices else []
        targets = {"target": target} if self.file.stages - 1 in self.indices else {}
        dist.barrier()
        began = time.monotonic()
        self.schedule.step(*inputs, return_outputs=False, **targets)
        return began, time.monotonic()

    def gradient_error(self, plain):
        """The largest relative difference of a gradient of this rank's stages to that of the plain step."""
        pairs = [
            (parameter.grad, expected)
            for index, model in zip(self.indices, self.models)
            for parameter, expected in zip(model.parameters(), plain[index])
        ]
        return max(((found - expected).abs().max() / expected.abs().max()).item() for found, expected in pairs)


def gathered(value):
    """What every rank has to say, by rank."""
    values = [None] * dist.get_world_size()
    dist.all_gather_object(values, value)
    return values


def run(file, rank, options):
    """Runs a file's steps on this rank; the whole report, on every rank."""
    global nap
    mine = Rank(file, rank)
    nap = 0.0
    mine.step()
    errors = gathered(mine.gradient_error(plain_gradients(file)))
    order = gathered(list(mine.order))
    seconds = []
    nap = options.sleep_ms / 1000
    for _ in range(options.repeat if nap > 0 else 0):
        spans = gathered(mine.step())
        seconds.append(max(end for _, end in spans) - min(start for start, _ in spans))
    return {
        "file": file.path,
        "ranks": file.ranks,
        "stages": file.stages,
        "micro_batches": file.micro_batches,
        "gradient_error": max(errors),
        "order_kept": order == file.order,
        "order": order,
        "seconds": seconds,
    }


def process(rank, ranks, meeting_point, files, options):
    """One rank: joins the others, runs every file, and prints the reports if it is the first."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo0" if sys.platform == "darwin" else "lo"
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting_point}", rank=rank, world_size=ranks, timeout=TIMEOUT
    )
    for file in files:
        report = run(file, rank, options)
        if rank == 0:
            print(json.dumps(report), flush=True)
    dist.destroy_process_group()


def run_together(ranks, files, options):
    """Runs files of the same number of ranks in one group of processes; whether all went well."""
    # Forked processes need not import PyTorch again; macOS cannot fork safely.
    context = multiprocessing.get_context("spawn" if sys.platform == "darwin" else "fork")
    with tempfile.TemporaryDirectory() as directory:
        shared = (ranks, os.path.join(directory, "meeting-point"), files, options)
        group = [context.Process(target=process, args=(rank, *shared), daemon=True) for rank in range(ranks)]
        for member in group:
            member.start()
        # When one fails, the others would wait for it until their time is out.
        multiprocessing.connection.wait([member.sentinel for member in group])
        while all(member.exitcode in (None, 0) for member in group) and any(m.is_alive() for m in group):
            time.sleep(0.02)
        for member in group:
            if member.is_alive():
                member.terminate()
            member.join()
    return all(member.exitcode == 0 for member in group)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sleep-ms", type=float, default=0, help="how long each F, I and W sleeps in timed steps")
    parser.add_argument("--repeat", type=int, default=5, help="timed steps of each file")
    parser.add_argument("files", nargs="+", metavar="FILE")
    options = parser.parse_args()
    files = [File(path) for path in options.files]
    for ranks in sorted({file.ranks for file in files}):
        if not run_together(ranks, [file for file in files if file.ranks == ranks], options):
            sys.exit(1)


if __name__ == "__main__":
    main()
