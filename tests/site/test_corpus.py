"""The corpus: published pipelines, order and resume, and what training waits for."""

import pytest
import scantling as sc
from scantling_site import part


def design(corpus=None, tokens=1e12):
    return sc.Design.from_data(
        {
            "scantling": 1,
            "model": "llama-3.1-8b",
            "cluster": {"accelerator": "h100-sxm", "devices": 256, "scale_out": "ib-ndr"},
            "job": {"tokens": tokens, "seq_len": 8192, "global_batch": 512}
            | ({"corpus": corpus} if corpus else {}),
        }
    )


def pipeline(corpus=None, **more):
    return part(sc.assess(design(corpus, **more)), "stores").corpus


def test_slimpajama_took_two_and_a_half_days_on_64_cores():
    """1.21e12 tokens to 627e9: MinHash took 49.6 % of the bytes, 2.5 days on 64 cores (Cerebras,
    2023-06)."""
    found = pipeline(
        {
            "raw_bytes": 1.21e12 * 4,
            "extract_share": 1,
            "dedup": ["near"],
            "keep_share": 1,
            "cores": 64,
        }
    )
    near = next(stage for stage in found.stages if stage.stage == "near")
    assert near.days == pytest.approx(2.5, rel=0.03)
    assert found.tokens == pytest.approx(627e9, rel=0.03)
    assert [stage.stage for stage in found.stages] == ["extract", "near", "filter", "tokenise"]


def test_stages_pass_on_what_they_leave():
    found = pipeline({"raw_bytes": 4e14, "extract_share": 0.2, "keep_share": 0.3})
    for one, then in zip(found.stages, found.stages[1:]):
        assert one.bytes_out == then.bytes_in
    assert found.stages[-1].bytes_out == 4 * found.tokens  # a vocabulary beyond 65,536
    assert found.tokens * found.epochs == pytest.approx(1e12)
    assert found.core_hours == pytest.approx(sum(stage.core_hours for stage in found.stages))
    fewer = pipeline({"raw_bytes": 4e14, "cores": 64})
    assert fewer.days > found.days and fewer.core_hours == pytest.approx(found.core_hours)


def test_left_out_the_raw_bytes_follow_from_the_tokens():
    found = pipeline()
    assert found.epochs == pytest.approx(1) and found.tokens == pytest.approx(1e12)
    said = {a.field: a.why for a in sc.assess(design()).resolved.assumed}
    assert "SlimPajama" in said["job.corpus.near_share"] and "job.corpus.raw_bytes" in said
    given = sc.assess(design({"near_share": 0.9, "raw_bytes": 1e15})).resolved.assumed
    assert not {"job.corpus.near_share", "job.corpus.raw_bytes"} & {a.field for a in given}


def test_a_step_waits_where_the_store_is_slower():
    base = sc.assess(design())
    assert base.step_breakdown_s["data"] == 0
    batch = 512 * 8192 * 4
    slow = sc.assess(design({"read_gbytes_per_s": batch / (2 * base.step_s) / 1e9}))
    assert slow.step_breakdown_s["data"] > 0
    assert slow.step_s == pytest.approx(2 * base.step_s, rel=1e-6)  # all of it is waited for
    few = sc.assess(design({"reads_per_s": 512 / (3 * base.step_s)}))
    assert few.step_s == pytest.approx(3 * base.step_s, rel=1e-6)


@pytest.mark.parametrize(
    "corpus, field",
    [
        ({"dedup": ["fuzzy"]}, "job.corpus.dedup.0"),
        ({"keep_share": 30}, "job.corpus.keep_share"),
        ({"raw": 3}, "job.corpus.raw"),
    ],
)
def test_wrong_corpora_are_named(corpus, field):
    with pytest.raises(sc.DesignError) as e:
        design(corpus)
    assert e.value.field == field
