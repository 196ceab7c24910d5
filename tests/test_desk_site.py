"""The folder of the site, as far as no browser is needed."""

from __future__ import annotations

import desk_site as site
import pytest
from scantling.base.errors import DesignError


def test_without_a_distribution_the_desk_is_left_out_and_one_line_says_how_to_add_it(
    tmp_path, capsys
):
    assert site.main(str(tmp_path / "desk"), None) == 0
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "make pyodide" in said
    assert not (tmp_path / "desk").exists()


def test_a_distribution_that_lacks_a_file_is_refused_by_its_name(tmp_path):
    with pytest.raises(DesignError, match="pyodide-lock.json.* is not there"):
        site.desk(tmp_path / "out", tmp_path)


def test_what_the_page_loads_holds_no_compiled_code_and_no_data_frames():
    names = [name for name, _ in site.sources()]
    assert len(names) == len(set(names))
    assert not [n for n in names if n.endswith((".so", ".pyc", ".ipynb"))]
    assert "scantling_widgets/designs/llama-3.1-405b.yaml" in names
