"""What a visitor of the page can take of its server: desks and bytes of a message are limited."""

from __future__ import annotations

import asyncio
import json

import pytest
from scantling_widgets import kernels, servers
from tornado.web import HTTPError
from traitlets.utils.importstring import import_item

SETTINGS = json.loads((servers._CONFIG / "voila.json").read_text(encoding="utf-8"))


def test_a_visitor_too_many_is_told_to_come_back():
    """503 Service Unavailable (RFC 9110, section 15.6.4): too many at once, for a while."""
    manager = import_item(SETTINGS["VoilaConfiguration"]["multi_kernel_manager_class"])()
    manager._kernels |= {str(n): None for n in range(kernels.MOST)}
    with pytest.raises(HTTPError) as said:
        asyncio.run(manager.start_kernel())
    assert said.value.status_code == 503


def test_a_message_has_a_size():
    assert SETTINGS["Voila"]["tornado_settings"]["websocket_max_message_size"] <= 16e6
