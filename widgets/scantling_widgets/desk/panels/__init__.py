"""The tabs of the desk, one module each; a panel is built when it is first shown and redrawn only
while it is on screen."""

from ..session import Session
from .base import Panel
from .compare import Compare
from .cost import Cost
from .evidence import Evidence
from .network import Network
from .plans import Plans
from .reliability import Reliability
from .report import Report
from .roofline import Roofline
from .schedule import Schedule
from .sensitivity import Sensitivity
from .tuning import Tuning

# in the order in which people ask
_KINDS: tuple[type[Panel], ...] = (
    Plans,
    Schedule,
    Network,
    Roofline,
    Reliability,
    Cost,
    Sensitivity,
    Compare,
    Evidence,
    Tuning,
    Report,
)


def panels(session: Session) -> list[Panel]:
    """All tabs."""
    return [kind(session) for kind in _KINDS]
