"""One function of many tasks, here or spread over the processes of a Dask cluster."""

PATIENCE_S = 10  # for a scheduler to answer


def across(function, tasks, scheduler=None, progress=None, total=None, each: int = 1) -> list:
    """Results of function(*task) for each task, in the order of the tasks; on a Dask cluster where
    a scheduler is named, and there what a worker that dies had in hand goes to another.

    progress : function(done, of), each task counted as `each` of `total`; may return False to stop:
    what is not done then is None or left out. Raises ImportError where Dask is not installed.
    """
    total = total or len(tasks)

    def stopped(done):
        return bool(progress) and progress(min(done * each, total), total) is False

    if scheduler is None:
        out = []
        for task in tasks:
            out.append(function(*task))
            if stopped(len(out)):
                break
        return out
    from distributed import Client, as_completed

    client = scheduler if hasattr(scheduler, "submit") else Client(scheduler, timeout=PATIENCE_S)
    try:
        futures = [client.submit(function, *task, pure=False) for task in tasks]
        for done, _ in enumerate(as_completed(futures), 1):
            if stopped(done):
                client.cancel([f for f in futures if not f.done()])
                return [f.result() if f.status == "finished" else None for f in futures]
        return client.gather(futures)
    finally:
        if client is not scheduler:
            client.close()
