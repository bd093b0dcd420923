"""Repeated trials of an experiment: kept as they are done, and compared as the papers compare them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path

import numpy as np
from scipy import stats
from threadpoolctl import threadpool_limits

from experiments.results import plain

#: Means whose difference a two-sample t-test at this level does not tell from zero are comparable.
LEVEL = 0.05


class Trials:
    """The trials of all sets, a line each in a file that is there until all are done.

    The file is kept as long as its settings, the commit among them, are those of the run. With ``commit``, it is one of
    the results: it stays, and trials of other commits count too, because each line names its own.
    """

    def __init__(self, name: str, folder: Path, settings: dict, commit: str | None = None):
        self.path = folder / (f".{name}_trials.jsonl" if commit is None else f"{name}_draws.jsonl")
        self.commit, self.done = commit, {}
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        if lines and json.loads(lines[0]) == settings:
            self.done = {(each["set"], each["number"]): each for each in map(json.loads, lines[1:])}
        else:
            folder.mkdir(parents=True, exist_ok=True)
            self.path.write_text(json.dumps(settings) + "\n")

    def add(self, trial: dict) -> None:
        trial = trial if self.commit is None else {**trial, "commit": self.commit}
        with self.path.open("a") as file:
            file.write(json.dumps(plain(trial)) + "\n")
        self.done[trial["set"], trial["number"]] = trial

    def finish(self) -> None:
        """Remove the file: the results have everything."""
        self.path.unlink()

    @property
    def commits(self) -> dict[str, int]:
        """How many trials each commit has made."""
        return dict(Counter(trial["commit"] for trial in self.done.values()))

    def of(self, name: str) -> list[dict]:
        return [trial for (of, _), trial in sorted(self.done.items()) if of == name]


def completed(run: Callable, tasks: Iterator, workers: int) -> Iterator[tuple]:
    """Each task with the result of ``run(task)``, in up to ``workers`` processes of one thread each.

    A task is taken from the iterator only when a process is free, so the iterator may end when the time is up.
    """
    if workers == 1:
        with threadpool_limits(1):
            yield from ((task, run(task)) for task in tasks)
        return
    with ProcessPoolExecutor(workers, initializer=threadpool_limits, initargs=(1,)) as pool:
        running = {pool.submit(run, task): task for task in islice(tasks, workers)}
        while running:
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                task = running.pop(future)
                running |= {pool.submit(run, following): following for following in islice(tasks, 1)}
                yield task, future.result()


def comparable_to_best(values: dict[str, np.ndarray]) -> set[str]:
    """The method of the best mean, and those that a t-test does not tell from it."""
    best = max(values, key=lambda method: values[method].mean())
    if len(values[best]) < 2:
        return {best}
    same = {method for method, each in values.items() if stats.ttest_ind(values[best], each).pvalue > LEVEL}
    return {best} | same
