"""What a visitor of the page can take of its server: desks and bytes of a message are limited."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request

import pytest
from scantling_widgets import shipped_files
from scantling_widgets.pages import servers, visitor_kernels
from tornado.web import HTTPError
from traitlets.utils.importstring import import_item

SETTINGS = json.loads((servers._CONFIG / "voila.json").read_text(encoding="utf-8"))


def test_a_visitor_too_many_is_told_to_come_back():
    """503 Service Unavailable (RFC 9110, section 15.6.4): too many at once, for a while."""
    manager = import_item(SETTINGS["VoilaConfiguration"]["multi_kernel_manager_class"])()
    manager._kernels |= {str(n): None for n in range(visitor_kernels.MOST)}
    with pytest.raises(HTTPError) as said:
        asyncio.run(manager.start_kernel())
    assert said.value.status_code == 503


def test_a_message_has_a_size():
    assert SETTINGS["Voila"]["tornado_settings"]["websocket_max_message_size"] <= 16e6


def test_requests_too_many_are_refused_until_the_bucket_has_filled_again(monkeypatch):
    """The token bucket: a burst at once, its rate for long, whatever the pause before."""
    now = [1000.0]
    monkeypatch.setattr(visitor_kernels, "monotonic", lambda: now[0])
    limit = visitor_kernels.TooMany(lambda request: request == "visitor")

    def answered(seconds, asked):
        now[0] += seconds
        return sum(limit.match("visitor") is None for _ in range(asked))

    assert answered(0, 5000) == visitor_kernels.BURST
    assert answered(0, 1) == 0
    assert answered(3, 5000) == 3 * visitor_kernels.PER_S
    assert answered(1e6, 5000) == visitor_kernels.BURST
    pace = [answered(1, int(visitor_kernels.PER_S)) for _ in range(1000)]
    assert {*pace} == {visitor_kernels.PER_S}
    while limit.match("stranger") is None:
        pass
    assert answered(0, 1) == 0 and answered(1, 1) == 1, "a stranger takes nothing of a visitor's"


@pytest.mark.slow
def test_a_flood_is_answered_429_and_the_page_lives():
    """RFC 6585, section 4: Too Many Requests."""
    codes = []
    with servers.voila_page(shipped_files.example(), port=9540) as page:
        while 429 not in codes and len(codes) < 5 * visitor_kernels.BURST:
            try:
                with urllib.request.urlopen(page.base + "/login", timeout=30) as answer:
                    codes.append(answer.status)
            except urllib.error.HTTPError as refused:
                codes.append(refused.code)
        assert {*codes} == {200, 429} and len(codes) > visitor_kernels.BURST
        with urllib.request.urlopen(f"{page.base}/?token={page.token}", timeout=60) as answer:
            assert answer.status == 200
