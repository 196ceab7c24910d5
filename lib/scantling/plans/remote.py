"""Work spread over the processes of a Dask cluster."""

from __future__ import annotations

PATIENCE_S = 10  # for a scheduler to answer


def across(
    function,
    tasks,
    scheduler,
    progress=None,
    total=None,
    each: int = 1,
) -> list:
    """Results of function(*task) for each task on a Dask cluster, in the order of the tasks; what a
    worker that dies had in hand goes to another.

    progress may return False to stop: what is not done then is None. Raises ImportError where Dask
    is not installed.
    """
    from distributed import Client, as_completed

    client = scheduler if hasattr(scheduler, "submit") else Client(scheduler, timeout=PATIENCE_S)
    try:
        futures = [client.submit(function, *task, pure=False) for task in tasks]
        done = 0
        for _ in as_completed(futures):
            done += 1
            if (
                progress
                and progress(min(done * each, total or len(tasks)), total or len(tasks)) is False
            ):
                client.cancel([f for f in futures if not f.done()])
                break
        return (
            [f.result() if f.status == "finished" else None for f in futures]
            if done < len(futures)
            else client.gather(futures)
        )
    finally:
        if client is not scheduler:
            client.close()
