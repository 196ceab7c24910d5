"""Designs as code: what a change of a design does, a lock of its figures, a check of many, a table
of thousands, and the modelled step as a trace."""

from .check import check as check
from .diff import diff as diff
from .lock import lock as lock
from .many import assess_many as assess_many
from .trace import trace as trace
