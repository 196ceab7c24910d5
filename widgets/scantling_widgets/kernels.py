"""Kernels of the page, one a visitor, at most as many as the machine has memory for."""

from __future__ import annotations

from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from tornado.web import HTTPError

MOST = 16  # visitors at a time, some 300 MB each: judgement


class Visitors(AsyncMappingKernelManager):
    """At most MOST kernels; who comes after that is told to come back."""

    async def start_kernel(self, **kwargs):
        """A kernel's id. Raises HTTPError 503 where all are taken."""
        if len(self) >= MOST:
            raise HTTPError(503, "all %d desks are taken: try again in half an hour", MOST)
        return await super().start_kernel(**kwargs)
