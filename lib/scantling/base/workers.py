"""Processes of a command's own: no word of them at Ctrl-C, none that is left when it ends."""

import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from os import devnull, dup2, getpid, kill
from threading import Thread
from typing import Any, ParamSpec, TypeVar

LEAVES_S = 5  # what a worker has to remove what its job holds
_CTRL_C = (signal.SIGINT,)
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
Start = Callable[[int], ProcessPoolExecutor]  # how many processes -> what hands jobs to them


class _Pool(ProcessPoolExecutor):
    """Processes that hear of a Ctrl-C, which a terminal sends to all, once they can leave."""

    def submit(
        self, fn: Callable[_Given, _Result], /, *args: _Given.args, **named: _Given.kwargs
    ) -> Future[_Result]:
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _CTRL_C)  # processes start with it
        try:
            return super().submit(fn, *args, **named)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def crew(prepare: Callable[[], None] | None = None) -> Iterator[Start]:
    """Inside, a function that starts executors, each of so many processes, which call `prepare`
    first. They end with the block, and with the process that has it, however that ends."""
    spawn = get_context("spawn")
    ended, ends = spawn.Pipe(duplex=False)
    pools: list[ProcessPoolExecutor] = []

    def start(processes: int) -> ProcessPoolExecutor:
        begin = partial(_begin, ended, prepare)
        pools.append(_Pool(processes, mp_context=spawn, initializer=begin))
        return pools[-1]

    try:
        yield start
    finally:
        ends.close()
        for pool in pools:
            pool.shutdown(wait=False, cancel_futures=True)
        ended.close()


def _begin(ended: Connection, prepare: Callable[[], None] | None) -> None:
    end_with_parent([ended])
    if prepare is not None:
        prepare()


def end_with_parent(others: list[Connection] | None = None) -> None:
    """In a worker: end with the process that started it, however that ended (kill -9 tells nobody),
    or with what it holds open in `others`; what a job holds goes with it, within LEAVES_S, after
    which SIGALRM ends it: an executor catches the exit that a job was left by, and would wait for
    the next. Ctrl-C, which goes to all, ends it without a word, and a kernel of its own, which may
    find its folder gone: faults are in what a job returns."""
    with open(devnull, "wb") as nowhere:
        dup2(nowhere.fileno(), 2)  # of standard error

    def leave(*_: Any) -> None:
        signal.alarm(LEAVES_S)
        sys.exit(1)

    for number in (signal.SIGTERM, signal.SIGINT):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as a shell starts what it puts behind
            signal.signal(number, leave)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _CTRL_C)

    def watch() -> None:
        parent = parent_process()
        if parent is None:
            return
        wait([parent.sentinel, *(others or [])])
        signal.alarm(LEAVES_S)
        kill(getpid(), signal.SIGTERM)

    Thread(target=watch, daemon=True).start()
