"""Tables of a user's own folders are read and let go of."""

import gc
import warnings

from scantling.base import extensions


def test_a_table_of_a_users_folder_is_closed_once_it_is_read(tmp_path, monkeypatch):
    (tmp_path / "accelerators.csv").write_text("id,hbm_gb\nown-chip,96\n", encoding="utf-8")
    monkeypatch.setattr(extensions, "folders", lambda: (tmp_path,))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        rows = extensions.added("accelerators.csv", ("id", "hbm_gb", "family"))
        gc.collect()
    assert rows == ({"id": "own-chip", "hbm_gb": "96", "family": ""},)
    assert [str(one.message) for one in told] == []
