"""Back to the last good state when a step would spoil the weights."""

from __future__ import annotations

import copy

from spectrakan.errors import RunError
from spectrakan.training.events import Recovered
from spectrakan.training.session import Session

CUT = 0.5
"""What the learning rate is multiplied by at each recovery."""


class Recovery:
    """Remembers the state at the start of an epoch, and goes back to it at a lower rate, a few times.

    The offending step itself is never taken, so the weights remembered are always finite. The session holds the
    remembered state, so that a checkpoint has it too and a resumed run goes back to where an undisturbed one would.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def remember(self) -> None:
        """Keep a copy of the present state; costs as much memory as the weights and the optimizer."""
        session = self.session
        if session.choices.training.max_recoveries:
            session.good = None
            session.good = copy.deepcopy(session.capture())

    def go_back(self, reason: str) -> Recovered:
        """Restore the remembered state with a lower rate; after too many times raise `RunError`."""
        session, position = self.session, self.session.position
        attempt = position.recoveries + 1
        allowed = session.choices.training.max_recoveries
        failed_at, epoch = position.step, session.loader.epoch
        good = session.good
        if good is None or attempt > allowed:
            raise RunError(
                f"training diverged at step {failed_at} of epoch {epoch}: {reason}. "
                f"It went back to a good state {allowed} times, each time at half the rate, in vain. "
                f"The best weights so far are kept. Try training.learning_rate below "
                f"{session.choices.training.learning_rate * position.rate_factor:.2g}, or a shorter training.horizon"
            )
        factor = position.rate_factor * CUT
        session.restore(good)
        session.good = good
        session.position.recoveries = attempt
        session.position.rate_factor = factor
        return Recovered(epoch, failed_at, reason, attempt, factor)
