"""One function of many tasks, here or spread over the processes of a Dask cluster."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

PATIENCE_S = 10  # for a scheduler to answer

Result = TypeVar("Result")
Progress = Callable[[int, int], Any]  # of (done, of); returns False to stop
Scheduler = Any  # address of a Dask scheduler, or a distributed.Client


def across(
    function: Callable[..., Result],
    tasks: Iterable[tuple[Any, ...]],
    scheduler: Scheduler | None = None,
    progress: Progress | None = None,
    total: int | None = None,
    each: int = 1,
    arrived: Callable[[Result], Any] | None = None,
    lost: Callable[[tuple[Any, ...]], Any] | None = None,
) -> list[Result | None]:
    """Results of function(*task) for each task, in the order of the tasks; on a Dask cluster where
    a scheduler is named, and there what a worker that dies had in hand goes to another.

    progress : function(done, of), each task counted as `each` of `total` (as many as there are
    tasks, where it is left out); may return False to stop: what is not done then is None or left
    out. arrived : function(result), called as each comes, in any order. lost : function(task) of
    one whose workers died more often than the scheduler allows, whose result is None; where it is
    left out, that is raised. Raises ImportError where Dask is not installed, and OSError where the
    scheduler goes away.
    """
    if total is None:
        tasks = [*tasks]
        total = len(tasks)
    of = total

    def stopped(done: int) -> bool:
        return progress is not None and progress(min(done * each, of), of) is False

    if scheduler is None:
        return _here(function, tasks, stopped, arrived)
    import distributed

    log = distributed.client.logger  # tracebacks of what is raised here in a line
    level, client = log.level, scheduler
    log.setLevel("CRITICAL")
    try:
        if not hasattr(scheduler, "submit"):
            try:
                client = distributed.Client(scheduler, timeout=PATIENCE_S)
            except ValueError as e:
                raise OSError(f"no address: {e}") from None
        return _there(client, function, tasks, stopped, arrived, lost)
    except (distributed.CancelledError, distributed.comm.core.CommClosedError):
        raise OSError("the scheduler went away") from None
    finally:
        if client is not scheduler:
            client.close()
        log.setLevel(level)


def _here(
    function: Callable[..., Result],
    tasks: Iterable[tuple[Any, ...]],
    stopped: Callable[[int], bool],
    arrived: Callable[[Result], Any] | None,
) -> list[Result | None]:
    """The results of the tasks one after the other, as far as nothing stops them."""
    results: list[Result | None] = []
    for task in tasks:
        result = function(*task)
        results.append(result)
        if arrived is not None:
            arrived(result)
        if stopped(len(results)):
            break
    return results


def _there(
    client: Any,
    function: Callable[..., Result],
    tasks: Iterable[tuple[Any, ...]],
    stopped: Callable[[int], bool],
    arrived: Callable[[Result], Any] | None,
    lost: Callable[[tuple[Any, ...]], Any] | None,
) -> list[Result | None]:
    """The results of the tasks of a cluster, as far as nothing stops them."""
    import distributed

    futures = {client.submit(function, *task, pure=False): task for task in tasks}
    results: dict[Any, Result | None] = dict.fromkeys(futures)
    done_in_turn = distributed.as_completed(futures)
    for done, future in enumerate(done_in_turn, 1):
        try:
            results[future] = result = future.result()
        except distributed.KilledWorker:
            if lost is None:
                raise
            lost(futures[future])
        else:
            if arrived is not None:
                arrived(result)
        if stopped(done):
            client.cancel([f for f in futures if not f.done()])
            break
    return [*results.values()]
