"""The lines of the verdict: texts of words.yaml, filled with a design's numbers."""

from ..base.words import Words, table

say = Words(table(__file__, "words"))
