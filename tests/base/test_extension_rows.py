"""Tables of a user's own folders are read and let go of."""

import gc
import warnings

import pytest
from scantling.base import extensions
from scantling.base.errors import CatalogueError
from scantling.catalogue import load


def test_a_table_of_a_users_folder_is_closed_once_it_is_read(tmp_path, monkeypatch):
    (tmp_path / "accelerators.csv").write_text("id,hbm_gb\nown-chip,96\n", encoding="utf-8")
    monkeypatch.setattr(extensions, "folders", lambda: (tmp_path,))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        rows = extensions.added("accelerators.csv", ("id", "hbm_gb", "family"))
        gc.collect()
    assert rows == ({"id": "own-chip", "hbm_gb": "96", "family": ""},)
    assert [str(one.message) for one in told] == []


def test_a_row_of_an_impossible_day_is_no_row(tmp_path):
    file = tmp_path / "own.csv"
    file.write_text("id,source,date,verified\na,quote,2026-02-31,text\n", encoding="utf-8")
    with pytest.raises(
        CatalogueError, match="line 2 .a.: date is '2026-02-31', not a date such as"
    ):
        load.read(file)
